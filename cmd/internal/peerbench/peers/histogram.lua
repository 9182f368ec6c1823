local floor = math.floor
return function(n)
  local xs, bins, keys, bars, most, sum, spread = {}, {}, {}, {}, 0, 0, 0
  for i = 0, n - 1 do xs[i + 1] = i * 7919 % 1000 + i * i % 997 end
  for _, x in ipairs(xs) do
    local k = floor(x / 100)
    bins[k] = (bins[k] or 0) + 1
    sum = sum + x
  end
  for k, c in pairs(bins) do
    keys[#keys + 1] = k
    most = math.max(most, c)
  end
  table.sort(keys)
  for i, k in ipairs(keys) do
    local s = tostring(k)
    bars[i] = string.rep(" ", 3 - #s) .. s .. " " .. string.rep("#", floor(bins[k] * 50 / most))
  end
  local mean = floor(sum / n)
  for _, x in ipairs(xs) do spread = spread + (x - mean) * (x - mean) end
  table.sort(xs)
  return #table.concat(bars, "\n") * 1000000 + xs[floor(n / 2) + 1] * 1000 + mean + floor(spread / n)
end
