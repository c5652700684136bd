// SPDX-License-Identifier: Apache-2.0
// A shared library without any of the symbols.
extern "C" int cachewarm_fake_empty() {
  return 1;
}
