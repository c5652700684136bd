// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/shell_words.h"

#include <algorithm>
#include <cctype>

namespace cachewarm::lint {
namespace {

bool IsSeparator(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || c == '&' || c == '|';
}

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the position after the substitution that begins at `at`: "$(...)", nested, or "`...`".
size_t EndOfSubstitution(std::string_view text, size_t at) {
  if (text[at] == '`') {
    const size_t end = text.find('`', at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  int depth = 0;
  for (size_t i = at + 1; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : 0;
    depth -= text[i] == ')' ? 1 : 0;
    if (depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

// Returns true if `word` occurs in `text` and is not part of a longer name.
bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (end == text.size() || !IsNameCharacter(text[end])) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> ShellWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  const auto end_word = [&] {
    if (!word.empty()) {
      words.push_back(std::move(word));
    }
    word.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool substitutes = c == '`' || (c == '$' && text.substr(i + 1).starts_with('('));
    if (substitutes && quote != '\'') {
      const size_t end = EndOfSubstitution(text, i);
      word += text.substr(i, end - i);
      i = end;
      continue;
    }
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote == 0 ? c : static_cast<char>(0);
    } else if (quote == 0 && c == '\\' && i + 1 < text.size()) {
      ++i;  // the next character is literal; a line break after it joins two lines
      if (text[i] != '\n') {
        word += text[i];
      }
    } else if (quote == 0 && IsSeparator(c)) {
      end_word();
    } else {
      word += c;
    }
    ++i;
  }
  end_word();
  return words;
}

bool IsRandom(std::string_view text) {
  static constexpr std::string_view kCalls[] = {
      "$(date",    "`date",   "$(mktemp", "`mktemp",   "$(uuidgen",  "`uuidgen", "$(hostname",
      "`hostname", "$RANDOM", "${RANDOM", "$HOSTNAME", "${HOSTNAME", "$SRANDOM", "${SRANDOM"};
  return std::any_of(std::begin(kCalls), std::end(kCalls),
                     [&](std::string_view call) { return HasWord(text, call); }) ||
         text.find("/proc/sys/kernel/random/") != std::string_view::npos;
}

}  // namespace cachewarm::lint
