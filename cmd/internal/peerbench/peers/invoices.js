(function (n) {
  const invoices = Array.from({ length: n }, (_, i) => ({
    customer: `c${(i * 7) % 97}`,
    rate: i % 3 === 0 ? 7 : 19,
    lines: Array.from({ length: 1 + (i % 5) }, (_, j) => ({ price: 199 + ((i * 37 + j * 91) % 9800), qty: 1 + ((i + j) % 4) })),
  }));
  const total = (invoice) => {
    const net = invoice.lines.reduce((sum, l) => sum + l.price * l.qty, 0);
    const reduced = net > 10000 ? net * 95 : net * 100;
    return Math.floor((reduced * (100 + invoice.rate) + 5000) / 10000);
  };
  const owed = new Map();
  for (const v of invoices) owed.set(v.customer, (owed.get(v.customer) || 0) + total(v));
  let all = 0;
  for (const x of owed.values()) all += x;
  return all;
})
