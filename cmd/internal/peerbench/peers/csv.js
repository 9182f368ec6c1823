(function (n) {
  const quote = (s) => (/[",\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s);
  const records = Array.from({ length: n }, (_, i) => ({ id: i, kind: ["tool", "toy", "book"][i % 3], name: i % 5 === 0 ? `no. ${i}, "new"` : `no. ${i}`, qty: (i * 17) % 100 }));
  const text = ["id,kind,name,qty", ...records.map((r) => [r.id, quote(r.kind), quote(r.name), r.qty].join(","))].join("\n") + "\n";
  const cells = (line) => {
    if (!line.includes('"')) return line.split(",");
    const out = [];
    let cell = "", quoted = false;
    for (let i = 0; i < line.length; i++) {
      const c = line[i];
      if (quoted) {
        if (c !== '"') cell += c;
        else if (line[i + 1] === '"') { cell += c; i++; }
        else quoted = false;
      } else if (c === '"') quoted = true;
      else if (c === ",") { out.push(cell); cell = ""; }
      else cell += c;
    }
    out.push(cell);
    return out;
  };
  const lines = text.trimEnd().split("\n").map(cells);
  const head = lines[0];
  const rows = lines.slice(1).map((line) => {
    const r = {};
    head.forEach((k, i) => { r[k] = line[i]; });
    return r;
  });
  const kinds = new Map();
  for (const r of rows) kinds.set(r.kind, (kinds.get(r.kind) || 0) + parseInt(r.qty, 10));
  let sum = text.length;
  for (const x of kinds.values()) sum += x;
  return sum + rows.reduce((s, r) => s + r.name.length, 0);
})
