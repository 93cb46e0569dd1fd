"""Lua scripts that change several keys in one atomic operation. A legend of keys and arguments precedes each script."""

# Makes the keys of many tasks agree with PostgreSQL. "keep" removes only the given ids, so a list that another process
# has replaced meanwhile keeps all its other ids.
#
# KEYS 1 offer_deadlines
# ARGV 1 JSON: a list for each task, of
#        1 task id                            2 student being asked, or ""
#        3 milliseconds the student has left  4 when the task is due in ms, or ""
#        5 "keep" | "drop" | "replace"        6 version in µs as text, or "0" to skip the check of versions
#        7 ids to remove (keep), or the new list (replace)
#      2 lifetime of a list in seconds  3 lifetime of a version in seconds
#      4 prefix of lists  5 prefix of pending keys  6 prefix of versions
SET_TASKS = """
local function is_old(key, version)
  if version == '0' then
    return false
  end
  local known = redis.call('GET', key)
  if known and tonumber(known) > tonumber(version) then
    return true
  end
  redis.call('SET', key, version, 'EX', ARGV[3])
  return false
end
local function change_list(key, change, ids)
  if change == 'keep' then
    for _, id in ipairs(ids) do
      redis.call('LREM', key, 1, id)
    end
    return
  end
  redis.call('DEL', key)
  if change == 'replace' and #ids > 0 then
    redis.call('RPUSH', key, unpack(ids))
    redis.call('EXPIRE', key, ARGV[2])
  end
end
for _, task in ipairs(cjson.decode(ARGV[1])) do
  local id, student, left_ms, due_ms, change, version, ids = unpack(task)
  if not is_old(ARGV[6] .. id, version) then
    change_list(ARGV[4] .. id, change, ids)
    if student ~= '' then
      redis.call('SET', ARGV[5] .. id, student, 'PX', left_ms)
    else
      redis.call('DEL', ARGV[5] .. id)
    end
    if due_ms ~= '' then
      redis.call('ZADD', KEYS[1], due_ms, id)
    else
      redis.call('ZREM', KEYS[1], id)
    end
  end
end
"""

# The first ids of many lists.
#
# KEYS the lists
# ARGV 1 index of the last id
PEEK = """
local lists = {}
for i, key in ipairs(KEYS) do
  lists[i] = redis.call('LRANGE', key, 0, ARGV[1])
end
return lists
"""

# Claims tasks that are due: sets the time of each to the end of the claim, so that no other process gets it meanwhile.
# If the claiming process dies, the task is due again when the claim ends. PTTL of the pending key makes Redis notice
# that the key has expired and send the event now, instead of when its sampling finds the key. A key that has not quite
# expired lasts as long as the claim: it would otherwise expire while the task is settled, and its event would bring the
# task back.
#
# KEYS 1 offer_deadlines
# ARGV 1 now in ms  2 most tasks to claim  3 end of the claim in ms  4 prefix of pending keys
#      5 prefix of lists  6 the number of candidates to return of each list
# Returns {score of the earliest member left or "", the task ids, their lists}
CLAIM_DUE = """
local lists, most = {}, tonumber(ARGV[6])
local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for i, id in ipairs(due) do
  redis.call('ZADD', KEYS[1], 'XX', ARGV[3], id)
  local left = redis.call('PTTL', ARGV[4] .. id)
  if left >= 0 and left < ARGV[3] - ARGV[1] then
    redis.call('PEXPIREAT', ARGV[4] .. id, ARGV[3])
  end
  lists[i] = most > 0 and redis.call('LRANGE', ARGV[5] .. id, 0, most - 1) or {}
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {first[2] or '', due, lists}
"""

# Writes a lost list again, unless another process has written it, or the task has changed, meanwhile.
#
# KEYS 1 task_candidates:<id>  2 task_version:<id>
# ARGV 1 lifetime in seconds  2 version in µs  3… ids in order
FILL_LIST = """
local known = redis.call('GET', KEYS[2])
if known and tonumber(known) > tonumber(ARGV[2]) then
  return
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('RPUSH', KEYS[1], unpack(ARGV, 3))
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
"""

# Marks a rebuild as complete, unless Redis was emptied, or another rebuild began, during it.
#
# KEYS 1 clockwork_complete
# ARGV 1 the token of this rebuild
FINISH_REBUILD = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], '1')
end
"""

# Decides whether a call to a provider may be made. When a breaker has been open for its time, one single caller gets
# "probe", for the recipient that may probe first: one without a failure at once, one that has failed later, and the one
# that failed last after all others. So one recipient for whom every call fails cannot be every probe.
#
# KEYS 1 breaker:<name>
# ARGV 1 milliseconds a probe may take  2 now in ms, or "" for Redis's own clock
#      3 ms in which only others probe than recipients that failed  4… the recipients
# Returns {"go" | "probe" | "wait", milliseconds to wait, place of the probe among the recipients}
ASK_BREAKER = """
local opened = redis.call('HGET', KEYS[1], 'open_until')
if not opened then
  return {'go', 0, 0}
end
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local last = redis.call('HGET', KEYS[1], 'last')
local turn, chosen = 2, 4
for i = 4, #ARGV do
  local own = (ARGV[i] == last and 2) or redis.call('HEXISTS', KEYS[1], 'failed:' .. ARGV[i])
  if own < turn then
    turn, chosen = own, i
  end
end
local from = tonumber(opened)
if now >= from then
  from = from + turn * ARGV[3]
end
local wait = math.max(from, tonumber(redis.call('HGET', KEYS[1], 'probe_until') or 0)) - now
if wait > 0 then
  return {'wait', wait, 0}
end
redis.call('HSET', KEYS[1], 'probe_until', now + ARGV[1])
return {'probe', 0, chosen - 4}
"""

# Counts the results of calls to a provider. Calls that failed for too many recipients in one window open the breaker.
# Only a probe changes an open breaker.
#
# KEYS 1 breaker:<name>
# ARGV 1 calls that succeeded  2 "1" for a probe  3 now in ms, or "" for Redis's own clock
#      4 window in ms  5 fewest failed recipients that open it  6 lowest share of them that opens it
#      7 ms to stay open  8 lifetime of the key in ms  9… the recipients of the calls that failed
TELL_BREAKER = """
local now = tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function count_failures()
  for i = 9, #ARGV do
    if redis.call('HSETNX', KEYS[1], 'failed:' .. ARGV[i], 1) == 1 then
      redis.call('HINCRBY', KEYS[1], 'failures', 1)
    end
    redis.call('HSET', KEYS[1], 'last', ARGV[i])
  end
end
if ARGV[2] == '1' then
  if #ARGV > 8 then
    count_failures()
    redis.call('HSET', KEYS[1], 'open_until', now + ARGV[7], 'probe_until', 0)
    redis.call('PEXPIRE', KEYS[1], ARGV[8])
  elseif tonumber(ARGV[1]) > 0 then
    redis.call('DEL', KEYS[1])
  elseif redis.call('EXISTS', KEYS[1]) == 1 then
    redis.call('HSET', KEYS[1], 'probe_until', 0)
  end
  return
end
if redis.call('HEXISTS', KEYS[1], 'open_until') == 1 then
  return
end
local began = tonumber(redis.call('HGET', KEYS[1], 'began') or 0)
if now - began > tonumber(ARGV[4]) then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'began', now)
end
count_failures()
local succeeded = redis.call('HINCRBY', KEYS[1], 'succeeded', ARGV[1])
local failures = tonumber(redis.call('HGET', KEYS[1], 'failures') or 0)
if failures >= tonumber(ARGV[5]) and failures >= ARGV[6] * (succeeded + failures) then
  redis.call('HSET', KEYS[1], 'open_until', now + ARGV[7])
end
redis.call('PEXPIRE', KEYS[1], ARGV[8])
"""
