// SPDX-License-Identifier: Apache-2.0
// A library of the right name with none of the symbols.
extern "C" int cachewarm_fake_empty() {
  return 1;
}
