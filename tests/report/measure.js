// SPDX-License-Identifier: Apache-2.0
// Evaluates to what a reader would notice in the page: texts without contrast, labels that overlap,
// and contents wider than the window.
(() => {
  const luminance = ([r, g, b]) => {
    const [lr, lg, lb] = [r, g, b].map(c => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * lr + 0.7152 * lg + 0.0722 * lb;
  };
  const parse = color => color.match(/[\d.]+/g).map(Number);
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const background = element => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const visible = element => element.getClientRects().length > 0;
  const own_text = element =>
    [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim() !== "");

  const texts = [...document.querySelectorAll("body *")].filter(
    e => visible(e) && own_text(e) && !["title", "desc"].includes(e.tagName));
  const contrasts = texts.map(e => {
    const style = getComputedStyle(e);
    const color = e instanceof SVGElement ? style.fill : style.color;
    return {text: e.textContent.slice(0, 40), contrast: contrast(parse(color), background(e))};
  });
  const marks = [...document.querySelectorAll("svg rect, svg circle")].filter(visible).map(e => {
    const style = getComputedStyle(e);
    const color = style.stroke === "none" ? style.fill : style.stroke;
    return {text: e.getAttribute("class"), contrast: contrast(parse(color), background(e))};
  });

  const overlaps = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const labels = [...chart.querySelectorAll("text")].filter(visible)
      .map(e => ({text: e.textContent, box: e.getBoundingClientRect()}));
    const frame = chart.getBoundingClientRect();
    for (let i = 0; i < labels.length; ++i) {
      const a = labels[i].box;
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1 ||
          a.top < frame.top - 1) {
        overlaps.push([labels[i].text, "the edge of " + chart.querySelector("title").textContent]);
      }
      for (let j = i + 1; j < labels.length; ++j) {
        const b = labels[j].box;
        // Boxes of lines include the space above and below the letters.
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 &&
            b.top < a.bottom - 3) {
          overlaps.push([labels[i].text, labels[j].text]);
        }
      }
    }
  }

  const width = document.documentElement.clientWidth;
  const too_wide = [...document.querySelectorAll("body *")].filter(
    e => visible(e) && !e.closest(".scroll") && e.getBoundingClientRect().right > width + 1)
    .map(e => e.tagName + " " + e.textContent.slice(0, 40));
  const small = texts.filter(e => parseFloat(getComputedStyle(e).fontSize) < 12)
    .map(e => e.textContent.slice(0, 40));
  return {
    width, scroll_width: document.documentElement.scrollWidth, too_wide, small, overlaps,
    texts: contrasts.length,
    faint: contrasts.filter(e => !(e.contrast >= 4.5)),
    faint_marks: marks.filter(e => !(e.contrast >= 3)),
    charts: document.querySelectorAll("svg.chart").length,
    background: getComputedStyle(document.body).backgroundColor,
  };
})()
