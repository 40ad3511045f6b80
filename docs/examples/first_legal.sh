#!/usr/bin/env bash
# An agent as a program: takes the first legal action, in bash and jq.
while IFS= read -r line; do
  case $(jq -r .type <<<"$line") in
    hello) echo '{"type":"ready"}' ;;
    observation) jq -c '{type: "action", action: (.legal[0] // .default)}' <<<"$line" ;;
    bye) exit 0 ;;
  esac
done
