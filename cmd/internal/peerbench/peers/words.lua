return function(n)
  local stock = {"The", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "And", "then", "sleeps", "in", "a", "warm", "Place", "until", "the", "morning", "comes"}
  local out, counts, list = {}, {}, {}
  for i = 0, n - 1 do out[i + 1] = stock[(i * i + i * 7) % 1013 % 19 + 1] end
  local text = table.concat(out, " ")
  for w in string.gmatch(string.lower(text), "[^ ]+") do counts[w] = (counts[w] or 0) + 1 end
  for word, times in pairs(counts) do list[#list + 1] = {word = word, times = times} end
  table.sort(list, function(a, b)
    if a.times ~= b.times then return a.times > b.times end
    return a.word < b.word
  end)
  local sum = #list * 1000000
  for k = 1, math.min(10, #list) do sum = sum + list[k].times * #list[k].word end
  return sum
end
