// SPDX-License-Identifier: Apache-2.0
#include "cli/report/html.h"

#include "cli/report/text.h"
#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

constexpr size_t kTextColumns = 1000;

}  // namespace

std::string Paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", Shown(text, kTextColumns));
}

std::string Details(std::string_view summary, std::string_view html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", Shown(summary, kCellColumns),
                     html);
}

std::string Render(const Table& table) {
  // Wide tables scroll by themselves, so that the page does not.
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table><caption>{0}</caption>\n<thead><tr>",
      Shown(table.caption, kTextColumns));
  for (const Column& column : table.columns) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"number\"" : "",
                        Shown(column.name, kCellColumns));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const std::string cell = i < row.size() ? Shown(row[i], kCellColumns) : "";
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", cell)
                     : fmt::format("<td{}>{}</td>",
                                   table.columns[i].is_number ? " class=\"number\"" : "", cell);
    }
    html += "</tr>\n";
  }
  html += "</tbody></table>\n</div>\n";
  if (table.omitted > 0) {
    const auto omitted = static_cast<int64_t>(table.omitted);
    html += Paragraph(fmt::format("{} more {}{} not listed.", FormatCount(omitted), table.noun,
                                  omitted == 1 ? " is" : "s are"));
  }
  return html;
}

std::string Render(const Section& section) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n"
      "<p class=\"lead\">{2}</p>\n{3}</section>\n",
      section.id, Shown(section.title, kCellColumns), Shown(section.lead, kTextColumns),
      section.html);
}

std::string Render(const std::vector<Tile>& tiles) {
  std::string html = "<ul class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    html += fmt::format(
        "<li><strong>{}</strong><span>{}</span>{}</li>\n", Shown(tile.value, kCellColumns),
        Shown(tile.label, kCellColumns),
        tile.note.empty() ? "" : fmt::format("<small>{}</small>", Shown(tile.note, kCellColumns)));
  }
  return html + "</ul>\n";
}

}  // namespace cachewarm::cli::report
