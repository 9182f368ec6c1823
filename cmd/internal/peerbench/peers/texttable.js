(function (n) {
  const cells = Array.from({ length: n }, (_, i) => [`item ${(i * i) % 1000}`, String(i % 250), String((i * 7919) % 100000), i % 2 === 0 ? "yes" : "no"]);
  const widths = cells[0].map((_, k) => cells.reduce((most, row) => Math.max(most, row[k].length), 0));
  const text = cells.map((row) => row.map((cell, k) => cell.padEnd(widths[k])).join(" | ")).join("\n");
  return text.length + widths.reduce((a, b) => a + b, 0);
})
