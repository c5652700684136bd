// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "lib/api/kubernetes.h"

// Parses k8s.io/apimachinery resource.Quantity: <sign><digits>[.<digits>]<suffix>. Rounds up; the
// result is at most the largest int64.
namespace cachewarm::api {
namespace {

struct Number {
  std::string_view whole;
  std::string_view fraction;
  bool negative = false;
  int power_of_ten = 0;
  int power_of_two = 0;
};

struct Suffix {
  std::string_view text;
  int power_of_ten;
  int power_of_two;
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

std::string_view TakeDigits(std::string_view& text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return c < '0' || c > '9'; });
  const auto count = static_cast<size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

bool TakeSuffix(std::string_view text, Number& number) {
  for (const Suffix& suffix : kSuffixes) {
    if (text == suffix.text) {
      number.power_of_ten = suffix.power_of_ten;
      number.power_of_two = suffix.power_of_two;
      return true;
    }
  }
  if (text.front() != 'e' && text.front() != 'E') {
    return false;
  }
  text.remove_prefix(1);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number.power_of_ten);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() &&
         number.power_of_ten >= -36 && number.power_of_ten <= 36;
}

bool Split(std::string_view text, Number& number) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    number.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  number.whole = TakeDigits(text);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    number.fraction = TakeDigits(text);
  }
  return !(number.whole.empty() && number.fraction.empty()) && TakeSuffix(text, number);
}

// Computes digits * 2^power_of_two * 10^ten without the sign, rounded up as Quantity.ScaledValue
// does for positive numbers. Returns false if a step overflows 64 bits.
bool Exact(const Number& number, int ten, uint64_t& value) {
  value = 0;
  for (std::string_view digits : {number.whole, number.fraction}) {
    for (char c : digits) {
      if (__builtin_mul_overflow(value, 10U, &value) ||
          __builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value)) {
        return false;
      }
    }
  }
  if (__builtin_mul_overflow(value, uint64_t{1} << static_cast<unsigned>(number.power_of_two),
                             &value)) {
    return false;
  }
  for (; ten > 0; --ten) {
    if (__builtin_mul_overflow(value, 10U, &value)) {
      return false;
    }
  }
  bool rest = false;
  for (; ten < 0; ++ten) {
    rest = rest || value % 10 != 0;
    value /= 10;
  }
  value += rest ? 1 : 0;
  return true;
}

// Fallback for values that overflow: the 64-bit mantissa of a long double is precise enough.
uint64_t Rough(const Number& number, int ten) {
  long double value = 0;
  for (std::string_view digits : {number.whole, number.fraction}) {
    for (char c : digits) {
      value = value * 10 + static_cast<long double>(c - '0');
    }
  }
  value = std::ceil(std::ldexp(value, number.power_of_two) * std::pow(10.0L, ten));
  constexpr auto kMost = static_cast<long double>(INT64_MAX);
  return value >= kMost ? uint64_t{INT64_MAX} : static_cast<uint64_t>(value);
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(std::string_view text, bool milli) {
  Number number;
  if (text.size() > 64 || !Split(text, number)) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is not a Kubernetes quantity such as 500m, 4, 16Gi or 1e9", text.substr(0, 64)));
  }
  const int ten = number.power_of_ten - static_cast<int>(number.fraction.size()) + (milli ? 3 : 0);
  uint64_t value = 0;
  if (!Exact(number, ten, value)) {
    value = Rough(number, ten);
  }
  const auto capped = static_cast<int64_t>(std::min(value, uint64_t{INT64_MAX}));
  return number.negative ? -capped : capped;
}

}  // namespace cachewarm::api
