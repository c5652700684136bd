// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace cachewarm::fakes {

// A certificate authority in a folder, created by the openssl program.
class Authority {
 public:
  Authority(const std::string& folder, const std::string& name) : base_(folder + "/" + name) {
    Openssl(
        fmt::format("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                    "-subj /CN={0} -keyout {1}.key -out {1}.crt",
                    name, base_));
  }

  std::string ca() const { return base_ + ".crt"; }

  // <base>-<name>.crt and .key, signed by this authority; returns them without the suffix.
  std::string Issue(const std::string& name, const std::string& alt_names) const {
    std::string leaf = base_ + "-" + name;
    std::ofstream(leaf + ".ext") << "subjectAltName=" << alt_names << "\n";
    Openssl(
        fmt::format("req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={0} "
                    "-keyout {1}.key -out {1}.csr",
                    name, leaf));
    Openssl(
        fmt::format("x509 -req -in {0}.csr -CA {1}.crt -CAkey {1}.key -CAcreateserial -days 2 "
                    "-extfile {0}.ext -out {0}.crt",
                    leaf, base_));
    return leaf;
  }

 private:
  static void Openssl(const std::string& arguments) {
    ASSERT_EQ(std::system(("openssl " + arguments + " >/dev/null 2>&1").c_str()), 0) << arguments;
  }

  std::string base_;
};

}  // namespace cachewarm::fakes
