// Draws the charts of a page with plotly, from the values that stand in it as JSON.
//
// Texts in the values come from tables and logs. Plotly reads some markup in its labels, so each of them goes through
// plain(); elsewhere they become text nodes. Colors are the page's own, and are read again when they change.
"use strict";

(() => {
  const values = JSON.parse(document.getElementById("zonal-data").textContent);
  const LAST_PLACE = 65535;
  const BESIDE = 0.015; // parts of an axis that lie beyond its ends
  const HALF_BAR = 0.425; // of a bar's width, where 1 is the step to the next bar
  const LAYERS = 12; // of files: within a layer overlaps don't show, from layer to layer they get darker
  const ONE_ABOVE_ANOTHER = "n";
  const SMALL = 12; // pixels of a text's height …
  const LARGE = 14; // … and of an axis' title, as plotly has it
  const CLUSTERED = "clustered";
  const LEAST_FILE = 3; // pixels of a file or …
  const LEAST_BOX = 8; // … of a query's box that would be a point
  const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: "reset" };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  const widths = new Map(); // of fields, as they are drawn
  let printing = false;

  // --- Texts and colors -----------------------------------------------------------------------------------------

  // Between two dollars plotly would look for a formula.
  const CODES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };
  const plain = (text) => String(text).replace(/[&<>$]/g, (mark) => CODES[mark]);

  function lines(text, width = 56) {
    const found = [];
    let line = "";
    for (const word of String(text).split(" ")) {
      if (line && line.length + word.length >= width) {
        found.push(line);
        line = "";
      }
      line += (line ? " " : "") + word;
      while (line.length > width) {
        found.push(line.slice(0, width));
        line = line.slice(width);
      }
    }
    return [...found, line].map(plain).join("<br>");
  }

  // The style of the page defines the colors; those of print by names of their own, for its rules for print don't hold
  // yet when a browser says that it is about to print.
  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue((printing ? "--printed-" : "--") + name).trim();
  }

  function faded(name, part) {
    const number = parseInt(color(name).slice(1), 16);
    return `rgba(${number >> 16},${(number >> 8) & 255},${number & 255},${part})`;
  }

  // --- Texts in the room there is -------------------------------------------------------------------------------

  const pen = document.createElement("canvas").getContext("2d");
  function widthOf(text, size = SMALL) {
    pen.font = `${size}px system-ui, sans-serif`;
    return pen.measureText(text).width;
  }

  function cut(text, most, size = SMALL, keepsEnd = false) {
    if (widthOf(text, size) <= most) return text;
    const left = Array.from(text);
    const written = () => (keepsEnd ? "…" + left.join("") : left.join("") + "…");
    while (left.length > 1 && widthOf(written(), size) > most) keepsEnd ? left.shift() : left.pop();
    return written();
  }

  // Texts that differ must not read the same: where their beginnings do, their ends stay.
  function cutApart(texts, most) {
    const found = texts.map((text) => cut(text, most));
    const isClear = new Set(found).size === new Set(texts).size;
    return isClear ? found : texts.map((text) => cut(text, most, SMALL, true));
  }

  // Which of some spans of pixels, in their order, don't touch each other: every one, every second …, or what fits.
  function apart(spans, gap) {
    const fits = (chosen) => chosen.every((at, number) => !number || spans[at][0] >= spans[chosen[number - 1]][1] + gap);
    const all = Array.from(spans.keys());
    for (let stride = 1; stride < all.length; stride++) {
      const chosen = all.filter((at) => at % stride === 0);
      if (fits(chosen)) return new Set(chosen);
    }
    const kept = [];
    for (const at of all) if (fits([...kept, at])) kept.push(at);
    return new Set(kept);
  }

  // --- Frames ---------------------------------------------------------------------------------------------------

  function axis(title, more = {}) {
    return {
      title: { text: plain(title), standoff: 8, font: { size: LARGE } },
      gridcolor: faded("line", 0.6),
      linecolor: color("line"),
      zeroline: false,
      automargin: true,
      tickfont: { color: color("soft") },
      ticklabeloverflow: "allow", // else plotly hides labels at the ends; there is room for them
      ...more,
    };
  }

  function layout(height, more) {
    return {
      height,
      margin: { l: 8, r: 12, t: 8, b: 8 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: SMALL, color: color("ink") },
      hoverlabel: { bgcolor: color("paper"), bordercolor: color("line"), font: { color: color("ink") }, align: "left" },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", itemclick: false, itemdoubleclick: false },
      dragmode: touch.matches ? false : "zoom",
      showlegend: false,
      bargap: 1 - 2 * HALF_BAR,
      ...more,
    };
  }

  function show(field, traces, wanted) {
    const place = field.querySelector(".plot");
    if (!place.classList.contains("drawn")) {
      place.replaceChildren();
      place.classList.add("drawn");
    }
    wanted.width = roomOf(field);
    widths.set(field, wanted.width);
    Plotly.react(place, traces, wanted, CONFIG);
  }

  function tell(field, label) {
    const heading = field.querySelector("h3");
    field.querySelector(".plot").setAttribute("aria-label", heading ? `${heading.textContent}: ${label}` : label);
  }

  // A page on paper is about 680 pixels wide, whatever the window was.
  function roomOf(field) {
    if (printing) return field.parentElement.childElementCount > 1 ? 330 : 680;
    return Math.max(field.querySelector(".plot").clientWidth, 160);
  }

  // --- Files as rectangles --------------------------------------------------------------------------------------

  function bytesOf(text) {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  }

  const known = new Map();
  function placesOf(text) {
    if (!known.has(text)) {
      const bytes = bytesOf(text);
      known.set(text, Uint16Array.from({ length: bytes.length / 2 }, (_, at) => bytes[2 * at] | (bytes[2 * at + 1] << 8)));
    }
    return known.get(text);
  }

  function maskOf(text, count) {
    const bytes = bytesOf(text);
    return Uint8Array.from({ length: count }, (_, at) => (bytes[at >> 3] >> (at & 7)) & 1);
  }

  // The sides of a drawing's files over two columns; files that hold nulls alone end before they begin.
  function sidesOf(drawing, across, up) {
    const left = placesOf(drawing.low[across]);
    const right = placesOf(drawing.high[across]);
    if (up !== ONE_ABOVE_ANOTHER) return [left, right, placesOf(drawing.low[up]), placesOf(drawing.high[up])];
    const order = Array.from(left.keys()).sort((a, b) => left[a] - left[b] || right[a] - right[b]);
    const bottom = new Float64Array(left.length);
    order.forEach((file, number) => (bottom[file] = (number * LAST_PLACE) / left.length));
    return [left, right, bottom, bottom.map((place) => place + (0.8 * LAST_PLACE) / left.length)];
  }

  // A file that is a point in both columns is drawn so large that it can be seen.
  function pathOf([left, right, bottom, top], file, [wide, high]) {
    const [dx, dy] = [wide - (right[file] - left[file]), high - (top[file] - bottom[file])];
    const [x, y] = dx > 0 && dy > 0 ? [Math.round(dx / 2), Math.round(dy / 2)] : [0, 0];
    return `M${left[file] - x},${bottom[file] - y}H${right[file] + x}V${top[file] + y}H${left[file] - x}Z`;
  }

  // Rectangles as a few shapes of many closed paths each: thousands of elements, or of points, would take seconds.
  // Where some stand out, the others step back, however many lie on top of each other.
  const HELD_BACK = 0.04; // of a layer: twelve of them leave more than half of what is above to be seen
  const STANDS_OUT = { fill: 0.4, edge: 1, width: 2 };

  function layersOf(sides, files, name, least, isBehind) {
    const [left, right, bottom, top] = sides;
    const count = Math.min(LAYERS, files.length);
    const ink = files.reduce((sum, at) => sum + right[at] - left[at] + top[at] - bottom[at], 0) / LAST_PLACE;
    const edge = Math.max(0.1, Math.min(0.85, 1 / (1 + ink / 100))); // the more edges, the fainter each of them
    const usual = Math.max(0.05, Math.min(0.3, 6 / Math.max(files.length, 1)));
    const strength = isBehind ? Math.min(usual, HELD_BACK) : usual;
    const outer = name === "read" ? STANDS_OUT : { fill: strength, edge, width: files.length > 500 ? 0.7 : 1 };
    const paths = Array.from({ length: count }, () => []);
    files.forEach((file, number) => paths[number % count].push(pathOf(sides, file, least)));
    return paths.map((parts) => ({
      type: "path",
      path: parts.join(""),
      fillcolor: faded(name, outer.fill),
      line: { color: faded(name, outer.edge), width: outer.width },
    }));
  }

  function boxesOf(question, across, up, [leastWide, leastHigh]) {
    const whole = [[-LAST_PLACE, 2 * LAST_PLACE]];
    const wide = question.boxes[across] || whole;
    const high = question.boxes[up] || whole;
    const x = [];
    const y = [];
    if (wide === whole && high === whole) return { type: "scatter", x, y };
    for (const [left, right] of wide) {
      for (const [bottom, top] of high) {
        const [dx, dy] = [(leastWide - (right - left)) / 2, (leastHigh - (top - bottom)) / 2];
        const [h, v] = dx > 0 && dy > 0 ? [dx, dy] : [0, 0]; // a line can be seen, a point can't
        x.push(left - h, right + h, right + h, left - h, left - h, null);
        y.push(bottom - v, bottom - v, top + v, top + v, bottom - v, null);
      }
    }
    const line = { color: color("ink"), width: 1.5, dash: "4px,3px", simplify: false };
    return { type: "scatter", mode: "lines", x, y, line, hoverinfo: "skip" };
  }

  function isOutside(question, across, up) {
    return [across, up].some((at) => question.boxes[at] && !question.boxes[at].length);
  }

  function placed(found, texts, room) {
    const range = [-BESIDE * LAST_PLACE, (1 + BESIDE) * LAST_PLACE];
    if (!found) return axis("files", { range, automargin: false, showticklabels: false, showgrid: false });
    const note = found.note || "";
    const title = cut(found.name, room - widthOf(note, LARGE), LARGE) + note;
    return axis(title, { range, automargin: false, tickvals: found.places, ticktext: texts.map(plain), tickangle: 0 });
  }

  // The axes of a field with the labels for which it has room, and the margins that these need.
  function framed(axes, across, up, width, height) {
    const [wide, high] = [axes[across], axes[up]];
    const partOf = (place) => (place / LAST_PLACE + BESIDE) / (1 + 2 * BESIDE);
    const upright = high ? cutApart(high.texts, width / 4) : [];
    const beside = 44 + Math.max(0, ...upright.map((text) => widthOf(text)));
    const inner = width - beside - 12;
    const texts = cutApart(wide.texts, 0.32 * inner);
    const spansOf = (inside) => texts.map((text, at) => {
      const [middle, half] = [partOf(wide.places[at]) * inside, widthOf(text) / 2];
      return [middle - half, middle + half];
    });
    const l = Math.max(beside, ...spansOf(inner).map(([start]) => 4 - start));
    const r = Math.max(12, ...spansOf(inner).map(([, end]) => end - inner + 4));
    const margin = { l, r, t: 8, b: 52 };
    const shown = apart(spansOf(width - l - r), 10);
    const rows = high ? high.places.map((place) => partOf(place) * (height - 60)).map((y) => [y - 7, y + 7]) : [];
    const shownUp = apart(rows, 0);
    return {
      margin,
      xaxis: placed(wide, texts.map((text, at) => (shown.has(at) ? text : "")), width - l - r),
      yaxis: placed(high, upright.map((text, at) => (shownUp.has(at) ? text : "")), height - 60),
    };
  }

  // What is seen, for those who don't see it.
  function labelOf(chart, across, up, kind) {
    const columns = `${chart.axes[across].name} and ${chart.axes[up] ? chart.axes[up].name : "their number"}`;
    const marked = { q: "; files that a query reads stand out", c: "; files that a commit added stand out" };
    return `files as rectangles over ${columns}${marked[kind] || ""}`;
  }

  function drawFiles(fields, chart, chosen) {
    const { across, up, marked = "" } = chosen;
    const kind = marked[0];
    const mark = kind ? (kind === "q" ? chart.questions : chart.commits)[Number(marked.slice(1))] : null;
    chart.drawings.forEach((drawing, number) => {
      const sides = sidesOf(drawing, across, up);
      const mask = mark ? maskOf(mark.reads[number], drawing.count) : new Uint8Array(drawing.count);
      const files = Array.from(mask.keys()).filter((at) => sides[0][at] <= sides[1][at] && sides[2][at] <= sides[3][at]);
      const [width, height] = [roomOf(fields[number]), printing ? 320 : 390];
      const frame = framed(chart.axes, across, up, width, height);
      const pixel = [width - frame.margin.l - frame.margin.r, height - 60].map((side) => ((1 + 2 * BESIDE) * LAST_PLACE) / side);
      const least = pixel.map((places) => LEAST_FILE * places);
      const shapes = [
        ...layersOf(sides, files.filter((at) => !mask[at]), "bar", least, mask.includes(1)),
        ...layersOf(sides, files.filter((at) => mask[at]), "read", least, false), // above all others
      ];
      const boxed = kind === "q" && boxesOf(mark, across, up, pixel.map((places) => LEAST_BOX * places));
      tell(fields[number], labelOf(chart, across, up, kind));
      show(fields[number], [boxed || { type: "scatter", x: [], y: [] }], layout(height, { ...frame, shapes }));
      const said = [mark ? mark.said[number] : ""];
      if (kind === "q" && isOutside(mark, across, up)) said.push("It asks for values beyond these axes.");
      if (files.length < drawing.count) {
        const left = drawing.count - files.length;
        said.push(left === 1 ? "1 file holds nulls alone, and has no place here."
          : `${left.toLocaleString("en")} files hold nulls alone, and have no place here.`);
      }
      fields[number].querySelector(".said").textContent = said.filter(Boolean).join(" ");
    });
  }

  // --- Bars and lines -------------------------------------------------------------------------------------------

  function drawDepths(fields, chart, chosen) {
    const { column, classes, counts, said } = chart.columns[Number(chosen.column)];
    tell(fields[0], `files by depth in ${column}`);
    const traces = counts.map((count, at) => ({
      type: "bar",
      name: plain(chart.labels[at]),
      x: classes.map((each) => " " + each), // a text, not a number: classes stand beside each other
      y: count,
      marker: { color: color(at < counts.length - 1 ? "old" : "bar") },
      hovertext: count.map((files, place) => plain(`${chart.labels[at]}: ${files.toLocaleString("en")} files of depth ${classes[place]}`)),
      hoverinfo: "text",
      textposition: "none",
    }));
    const xaxis = axis("depth", { type: "category", showgrid: false });
    const yaxis = axis("files", { tickformat: ",d", rangemode: "tozero" });
    show(fields[0], traces, layout(260, { xaxis, yaxis, showlegend: counts.length > 1, bargap: Math.max(0.2, 0.9 - 0.15 * classes.length) }));
    fields[0].querySelector(".said").textContent = said;
  }

  // A form for shares up to the largest of them, with enough digits for the steps between.
  function shareForm(found) {
    const most = Math.max(0, ...found.filter((share) => share !== null));
    return `.${most > 0 ? Math.min(15, Math.max(2, 2 - Math.floor(Math.log10(100 * most)))) : 2}~%`;
  }

  const LOOKS = {
    bar: () => ({ type: "bar", marker: { color: color("bar") } }),
    line: () => ({ type: "scatter", mode: "lines", line: { color: color("old"), width: 2, shape: "hvh" } }),
    old: () => ({ type: "scatter", mode: "markers", marker: { color: color("ink"), symbol: "line-ew-open", size: 8, line: { width: 2 } } }),
    mark: () => ({ type: "scatter", mode: "markers", marker: { color: color("good"), symbol: "diamond", size: 7 } }),
    alarm: () => ({ type: "scatter", mode: "markers", marker: { color: color("bad"), symbol: "triangle-up", size: 10 } }),
  };

  function drawShares(fields, chart) {
    const numbers = chart.texts.map((_, at) => at + 1);
    const told = chart.texts.map((text, at) => {
      const found = chart.series.map((each, number) => [each, chart.said_values[number][at]]);
      const rows = found.filter(([each]) => each.look !== "alarm").map(([each, said]) => plain(`${each.name}: ${said}`));
      return [lines(`${at + 1}. ${text}`), ...rows].join("<br>");
    });
    // A line of steps begins and ends where the outer bars do.
    const ended = (each, list) => (each.look === "line" ? [list[0], ...list, list[list.length - 1]] : list);
    const traces = chart.series.map((each) => ({
      ...LOOKS[each.look](),
      name: plain(each.name),
      x: each.look === "line" ? [1 - HALF_BAR, ...numbers, numbers.length + HALF_BAR] : numbers,
      y: ended(each, each.values),
      hovertext: ended(each, told),
      hoverinfo: "text",
      textposition: "none",
    }));
    const xaxis = axis("query", { tickformat: ",d", showgrid: false, range: [0.4, numbers.length + 0.6] });
    if (numbers.length <= 12) xaxis.dtick = 1;
    const tickformat = shareForm(chart.series.flatMap((each) => each.values));
    const yaxis = axis("share of the bytes", { tickformat, rangemode: "tozero" });
    show(fields[0], traces, layout(300, { xaxis, yaxis, showlegend: traces.length > 1, hovermode: "closest" }));
  }

  // The first and the last of some moments, in milliseconds, with some room beside them.
  function momentsOf(times) {
    const found = times.map((time) => Date.parse(time.replace(" ", "T") + "Z"));
    const [first, last] = [found.reduce((a, b) => Math.min(a, b)), found.reduce((a, b) => Math.max(a, b))];
    const beside = 0.04 * (last - first) || 3_600_000;
    return [first - beside, last + beside];
  }

  // The newest rewrites for whose label there is room, each with the side of the label that stands at its line.
  function labeledRuns(runs, start, end, width) {
    const long = widthOf(CLUSTERED, 11);
    const spans = runs.map((run) => {
      const at = ((Date.parse(run.time.replace(" ", "T") + "Z") - start) / (end - start)) * width;
      const side = at < long / 2 ? "left" : at > width - long / 2 ? "right" : "center";
      const left = at - { left: 0, center: long / 2, right: long }[side];
      return [run, side, left];
    });
    const kept = [];
    for (const each of spans.reverse()) {
      if (kept.every((other) => Math.abs(each[2] - other[2]) > long + 8)) kept.push(each);
    }
    return kept;
  }

  function drawTrend(fields, chart) {
    const alarm = chart.alarms.map((is) => (is ? "bad" : "bar"));
    const traces = [
      {
        type: "scatter",
        mode: "lines+markers",
        x: chart.times,
        y: chart.values,
        line: { color: color("bar"), width: 2 },
        marker: { color: alarm.map(color), size: 8, symbol: chart.alarms.map((is) => (is ? "triangle-up" : "circle")) },
        hovertext: chart.texts.map((text) => lines(text)),
        hoverinfo: "text",
      },
      {
        type: "scatter",
        mode: "markers",
        x: chart.runs.map((run) => run.time),
        y: chart.runs.map(() => 0),
        marker: { color: color("good"), symbol: "diamond", size: 9 },
        hovertext: chart.runs.map((run) => lines(run.text)),
        hoverinfo: "text",
      },
    ];
    const upright = (run) => ({
      type: "line", x0: run.time, x1: run.time, y0: 0, y1: 1, yref: "paper", layer: "below",
      line: { color: color("good"), width: 1.5, dash: "dot" },
    });
    const shapes = chart.runs.map(upright);
    const [start, end] = momentsOf([...chart.times, ...chart.runs.map((run) => run.time)]);
    const annotations = labeledRuns(chart.runs, start, end, roomOf(fields[0]) - 70).map(([run, xanchor]) => ({
      x: run.time, xanchor, y: 1, yref: "paper", yanchor: "bottom", text: CLUSTERED, showarrow: false,
      font: { color: color("good"), size: 11 },
    }));
    if (chart.limit !== null) {
      const line = { color: color("bad"), width: 1.5, dash: "dash" };
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: chart.limit, y1: chart.limit, line });
      annotations.push({
        xref: "paper", x: 0, xanchor: "left", y: chart.limit, yanchor: "bottom", showarrow: false,
        text: plain(chart.limit_text), font: { color: color("bad"), size: 11 },
      });
    }
    const tickformat = shareForm([...chart.values, chart.limit]);
    const yaxis = axis("", { tickformat, rangemode: "tozero" });
    const margin = { l: 8, r: 12, t: 22, b: 8 };
    const range = [start, end].map((moment) => new Date(moment).toISOString().slice(0, 23));
    const nticks = Math.max(2, Math.floor(roomOf(fields[0]) / 110));
    const xaxis = axis("", { type: "date", range, nticks, tickangle: 0, ticklabeloverflow: "hide past div" });
    show(fields[0], traces, layout(280, { xaxis, yaxis, shapes, annotations, margin }));
  }

  // Lines over time, each with points of its own.
  function drawCourses(fields, chart) {
    const traces = chart.lines.map((each) => ({
      type: "scatter",
      mode: "lines+markers",
      name: plain(each.name),
      x: each.times,
      y: each.values,
      line: { color: color(each.color), width: 2 },
      marker: { color: color(each.color), size: 6 },
      hovertext: each.texts.map((text) => lines(text)),
      hoverinfo: "text",
    }));
    const range = momentsOf(chart.lines.flatMap((each) => each.times)).map((moment) => new Date(moment).toISOString().slice(0, 23));
    const nticks = Math.max(2, Math.floor(roomOf(fields[0]) / 110));
    const xaxis = axis("", { type: "date", range, nticks, tickangle: 0, ticklabeloverflow: "hide past div" });
    const yaxis = axis("", { rangemode: "tozero" });
    show(fields[0], traces, layout(320, { xaxis, yaxis, showlegend: traces.length > 1, hovermode: "closest" }));
  }

  function drawBars(fields, chart) {
    const places = chart.labels.map((_, at) => at);
    const traces = [
      {
        type: "bar",
        orientation: "h",
        y: places,
        x: chart.values,
        marker: { color: chart.marked.map((is) => color(is ? "bad" : "bar")) },
        text: chart.said_values.map(plain),
        textposition: "outside",
        cliponaxis: false,
        hovertext: chart.texts.map((text) => lines(text)),
        hoverinfo: "text",
      },
    ];
    const most = Math.max(...chart.values) || 1;
    const labels = cutApart(chart.labels, roomOf(fields[0]) / 3);
    const inner = roomOf(fields[0]) - 40 - Math.max(...labels.map((text) => widthOf(text)));
    const beside = 12 + Math.max(...chart.said_values.map((text) => widthOf(text))); // of the longest bar
    const tickformat = shareForm(chart.values);
    const xaxis = axis("", { tickformat, range: [0, (most * inner) / (inner - beside)], ticklabeloverflow: "hide past div" });
    const ticks = { tickvals: places, ticktext: labels.map(plain), ticklabelstandoff: 4 };
    const yaxis = axis("", { range: [places.length - 0.4, -0.6], showgrid: false, ...ticks });
    show(fields[0], traces, layout(70 + 30 * places.length, { xaxis, yaxis }));
  }

  // --- The page -------------------------------------------------------------------------------------------------

  const KINDS = { files: drawFiles, depths: drawDepths, shares: drawShares, trend: drawTrend, bars: drawBars, courses: drawCourses };

  function draw(figure) {
    const chart = values[figure.dataset.chart];
    const selects = Array.from(figure.querySelectorAll("select"));
    const chosen = Object.fromEntries(selects.map((select) => [select.dataset.choice, select.value]));
    KINDS[chart.kind](fieldsOf(figure), chart, chosen);
  }

  const figures = Array.from(document.querySelectorAll("figure[data-chart]"));
  const fieldsOf = (figure) => Array.from(figure.querySelectorAll(".field"));
  const drawAll = () => figures.forEach(draw);

  // One figure after another, so that the first ones can be seen and used while the others are drawn.
  function drawInTurn(left) {
    if (!left.length) return;
    draw(left[0]);
    setTimeout(drawInTurn, 0, left.slice(1));
  }

  function print(is) {
    if (printing === is) return;
    printing = is;
    drawAll();
  }

  // Plotly's own answer to another width forgets the height, and doesn't choose labels anew.
  let waiting = 0;
  function resized() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const isOther = (field) => widths.has(field) && widths.get(field) !== roomOf(field);
      figures.filter((figure) => fieldsOf(figure).some(isOther)).forEach(draw);
    }, 60);
  }

  document.documentElement.classList.add("scripted");
  for (const figure of figures) figure.addEventListener("change", () => draw(figure));
  dark.addEventListener("change", drawAll);
  matchMedia("print").addEventListener("change", (event) => print(event.matches));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  const observer = new ResizeObserver(resized);
  figures.flatMap(fieldsOf).forEach((field) => observer.observe(field));
  drawInTurn(figures);
})();
