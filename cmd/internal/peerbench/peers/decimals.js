(function (n) {
  let balance = 100000;
  for (let day = 0; day < n; day++) {
    const interest = Math.floor((balance * 5 + 5000) / 10000);
    const fee = Math.floor((balance * 4 + 5000) / 10000);
    balance += interest - fee + (day % 30 === 0 ? 1250 : 25);
  }
  return balance;
})
