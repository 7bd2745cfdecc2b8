// Elements and small pictures: everything goes through text nodes and attributes, so that a name is shown as it is.
const bridleDrawing = (function () {
  const { number, shortened } = bridlePage;
  const SVG = "http://www.w3.org/2000/svg";
  const FRAME = { left: 52, right: 12, top: 10, bottom: 24, height: 240 };

  // make("td", { class: "left" }, "text", child, ...): an element with attributes and children.
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) if (value !== null && value !== false) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
    return element;
  }

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // Three to six round numbers that span [low, high].
  function ticks(low, high) {
    if (!(high > low)) return [low];
    const rough = (high - low) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * step; at += step) found.push(Math.abs(at) < 1e-9 * step ? 0 : at);
    return found;
  }

  function short(value) {
    const size = Math.abs(value);
    for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= unit) return (value < 0 ? "−" : "") + (size / unit).toLocaleString("en", { maximumSignificantDigits: 3 }) + letter;
    }
    return number(Number(value.toPrecision(6)));
  }

  // Lines over rounds: series are { name, points: [[x, y], ...], dashed }; `label` says what it shows to who cannot see it.
  function lineChart(label, series, width) {
    const shown = series.map((each, i) => ({ ...each, place: i % 8, points: each.points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)) }));
    const all = shown.flatMap((each) => each.points);
    if (!all.length) return make("p", { class: "empty-note" }, "Nothing to draw yet.");
    const extent = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    let [left, right] = extent(all.map((point) => point[0]));
    let [low, high] = extent(all.map((point) => point[1]));
    if (low > 0 && low < 0.6 * high) low = 0;
    if (high === low) [low, high] = [Math.min(0, low), Math.max(high, low === 0 ? 1 : 0)];
    const room = 0.05 * (high - low);
    high += room;
    if (low < 0) low -= room;
    if (right === left) right = left + 1;
    const { top, bottom, height } = FRAME;
    const marks = ticks(low, high);
    const margin = Math.max(FRAME.left, 14 + 6.6 * Math.max(...marks.map((value) => short(value).length)));
    const across = (x) => margin + ((x - left) / (right - left)) * (width - margin - FRAME.right);
    const up = (y) => height - bottom - ((y - low) / (high - low)) * (height - bottom - top);
    const picture = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    for (const value of marks) {
      picture.append(draw("line", { class: "grid", x1: margin, x2: width - FRAME.right, y1: up(value), y2: up(value) }));
      picture.append(draw("text", { x: margin - 8, y: up(value) + 4, "text-anchor": "end" }, short(value)));
    }
    for (const value of ticks(left, right).filter(Number.isInteger).filter((at) => across(at) < width - FRAME.right - 4)) {
      picture.append(draw("text", { x: across(value), y: height - 6, "text-anchor": "middle" }, short(value)));
    }
    picture.append(draw("line", { class: "axis", x1: margin, x2: width - FRAME.right, y1: height - bottom, y2: height - bottom }));
    for (const each of shown) {
      if (!each.points.length) continue;
      const path = each.points.map(([x, y], i) => `${i ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
      const lone = each.points.length === 1 ? "h3" : "";
      picture.append(draw("path", { class: `series c${each.place}${each.dashed ? " dashed" : ""}`, d: path + lone }));
    }
    const keys = make("ul", { class: "keys" });
    for (const each of shown) {
      const last = each.points.length ? each.points[each.points.length - 1][1] : null;
      const line = draw("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, draw("path", { class: `series c${each.place}${each.dashed ? " dashed" : ""}`, d: "M0 4H24" }));
      keys.append(make("li", {}, line, `${shortened(each.name, 40)} ${number(last)}`));
    }
    return make("div", {}, picture, keys);
  }

  // A bar a row: { name, value, text, over, asked }, on one scale.
  function bars(label, rows) {
    const most = Math.max(1e-12, ...rows.flatMap((row) => [row.value || 0, row.asked || 0]));
    const box = make("div", { class: "bars", role: "group", "aria-label": label });
    for (const row of rows) {
      const picture = draw("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
      picture.append(draw("rect", { class: "track", width: 100, height: 10, rx: 1 }));
      picture.append(draw("rect", { class: `fill${row.over ? " over" : ""}`, width: (100 * Math.max(0, row.value || 0)) / most, height: 10 }));
      if (row.asked !== undefined && row.asked !== null) {
        const at = (100 * row.asked) / most;
        picture.append(draw("line", { class: "asked", x1: at, x2: at, y1: -2, y2: 12, "vector-effect": "non-scaling-stroke" }));
      }
      box.append(make("span", { class: "name", title: row.name }, row.name), picture, make("span", { class: "value" }, row.text));
    }
    return box;
  }

  function table(label, head, rows) {
    const cell = (value, i, tag) => {
      const made = value instanceof Node && /^T[DH]$/.test(value.tagName) ? value : make(i ? "td" : tag, i ? {} : { scope: "row" }, value);
      made.dataset.label = head[i]; // where rows are cards
      return made;
    };
    const names = make("tr", {}, ...head.map((name, i) => make("th", { scope: "col", class: i ? null : "name" }, name)));
    const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value, i) => cell(value, i, "th")))));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, make("table", {}, make("thead", {}, names), body));
  }

  function figures(facts) {
    return make("dl", { class: "figures" }, ...facts.map(([name, value, more]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, more ? make("small", {}, more) : null))));
  }

  return { make, lineChart, bars, table, figures };
})();
