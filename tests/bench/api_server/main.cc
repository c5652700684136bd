// SPDX-License-Identifier: Apache-2.0
// bench_api_server KUBECONFIG: serves the API server of the tests on a free port of loopback, and
// writes a kubeconfig file that leads there. Runs until SIGTERM.
#include <signal.h>

#include <cstdio>
#include <fstream>

#include "lib/base/clock.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/kube_front.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bench_api_server KUBECONFIG\n", stderr);
    return 2;
  }
  // Before the server starts its threads, so that they block the signal, too.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  cachewarm::fakes::FakeApiServer server(cachewarm::SystemClock());
  const cachewarm::fakes::KubeFront front(server);
  if (!(std::ofstream(argv[1]) << front.Kubeconfig()).flush()) {
    std::fprintf(stderr, "bench_api_server: cannot write %s\n", argv[1]);
    return 1;
  }
  int signal = 0;
  ::sigwait(&ends, &signal);
  return 0;
}
