(function (n) {
  const a = Array.from({ length: n }, (_, i) => `line ${(i * 7) % 50}`);
  const b = Array.from({ length: n }, (_, i) => `line ${(i * 11) % 60}`);
  const table = [new Array(n + 1).fill(0)];
  for (const x of a) {
    const prev = table[table.length - 1], row = [0];
    for (let j = 0; j < n; j++) row.push(x === b[j] ? prev[j] + 1 : Math.max(row[j], prev[j + 1]));
    table.push(row);
  }
  const out = [];
  let i = n, j = n;
  while (i > 0 || j > 0) {
    if (i > 0 && j > 0 && a[i - 1] === b[j - 1]) { out.push("  " + a[--i]); j--; }
    else if (j > 0 && (i === 0 || table[i][j - 1] >= table[i - 1][j])) out.push("+ " + b[--j]);
    else out.push("- " + a[--i]);
  }
  return out.reverse().join("\n").length * 1000 + table[n][n];
})
