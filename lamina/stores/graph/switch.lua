-- Puts the graph of a build in the place of the one that is searched, unless that was done before.
-- A build that took no change has no graph: then nothing is found any more.
-- KEYS: the build's graph, the searched one, the number of the build that this one is of. ARGV: the build's number.
if tonumber(redis.call('GET', KEYS[3]) or '0') >= tonumber(ARGV[1]) then
  return 0
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[2])
else
  redis.call('DEL', KEYS[2])
end
redis.call('SET', KEYS[3], ARGV[1])
return 1
