(function (n) {
  const text = JSON.stringify({ items: Array.from({ length: n }, (_, i) => ({ id: i, name: `item ${i}`, tags: ["new", 'a "b"\n'], price: 5 + (i % 100), on: i % 2 === 0 })) });
  const doc = JSON.parse(text);
  const out = JSON.stringify({ ...doc, items: doc.items.filter((x) => x.on).map((x) => ({ ...x, price: x.price + 1 })) });
  return text.length + out.length + doc.items.reduce((sum, x) => sum + x.price, 0);
})
