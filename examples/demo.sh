#!/bin/bash
# Serves examples/films from build/bin/simile, asks it what a newcomer would ask, prints commands and
# answers, and stops the server. Exits non-zero when anything is not as it should be.
#   DEMO_PROGRAM   the program to show (default: build/bin/simile of this checkout)
set -euo pipefail
cd "$(dirname "$0")/.."
program="${DEMO_PROGRAM:-$PWD/build/bin/simile}"
python=/usr/bin/python3  # the one that Debian's python3-grpcio belongs to

work="$(mktemp -d)"
server_pid=""
stop_server() {
  if [ -n "$server_pid" ]; then
    kill -TERM "$server_pid" 2>/dev/null || true
    wait "$server_pid" || true
    server_pid=""
  fi
}
trap 'stop_server; rm -rf "$work"' EXIT

fail() {
  echo "demo: $*" >&2
  if [ -s "$work/serve.log" ]; then sed 's/^/  serve: /' "$work/serve.log" >&2; fi
  exit 1
}

# What the reader would type, quotes included.
typed() {
  local word line='$'
  for word in "$@"; do
    case "$word" in *[!A-Za-z0-9_./:=-]*) line+=" \"$word\"" ;; *) line+=" $word" ;; esac
  done
  printf '\n%s\n' "$line"
}

# show EXIT_CODE COMMAND...: prints the command, runs it, and checks how it ended.
show() {
  local expected="$1" code=0
  shift
  typed "$@"
  "$@" || code=$?
  [ "$code" -eq "$expected" ] || fail "'$*' ended with $code where $expected was expected"
}

simile() { "$program" "$@" 2>&1; }

wait_for_port() {
  local attempt
  for attempt in $(seq 300); do
    [ -s "$work/port" ] && return
    kill -0 "$server_pid" 2>/dev/null || fail "the server ended before it listened"
    sleep 0.1
  done
  fail "the server did not listen within 30 s"
}

wait_for_health() {
  local attempt
  for attempt in $(seq 300); do
    simile health >/dev/null && return
    sleep 0.1
  done
  fail "the server did not serve within 30 s"
}

[ -x "$program" ] || fail "$program is not there; \`make build\` makes it"

echo '$ simile serve --collection films=examples/films --port 0 --metrics-port 0 &'
"$program" serve --collection films=examples/films --port 0 --port-file "$work/port" \
  --metrics-port 0 >"$work/serve.log" 2>&1 &
server_pid=$!
wait_for_port
SIMILE_SERVER="127.0.0.1:$(cat "$work/port")"
export SIMILE_SERVER
wait_for_health
cat "$work/serve.log"

show 0 simile health
show 0 simile list
show 0 simile similar --title "Toy Story" -k 5
show 0 simile recommend --user user_00042 -k 3 --exclude-seen
show 1 simile similar --title Batman
show 1 simile recommend --user user_42

if "$python" -c 'import google.protobuf, grpc' 2>/dev/null; then
  examples/python/make_stubs.sh "$work/stubs"
  typed python3 examples/python/client.py "$SIMILE_SERVER"
  PYTHONPATH="$work/stubs" "$python" examples/python/client.py "$SIMILE_SERVER" ||
    fail "the Python client failed"
else
  printf '\n(the Python client needs python3-grpcio and python3-protobuf, which are not installed)\n'
fi

printf '\n$ kill %s\n' "$server_pid"
kill -TERM "$server_pid"
code=0
wait "$server_pid" || code=$?
server_pid=""
[ "$code" -eq 0 ] || fail "the server ended with $code"
echo "the server drained and stopped"
