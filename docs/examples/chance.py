"""An agent as a program: draws a legal action, in Python's standard library alone."""

import json
import random
import sys


def say(message):
    print(json.dumps(message), flush=True)


chance = random.Random()
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        chance = random.Random(message["random"])  # the same whenever this episode is played
        say({"type": "ready", "reuse": True})
    elif message["type"] == "observation":
        legal = message.get("legal") or [message["default"]]
        print("legal actions:", len(legal), file=sys.stderr)  # kept, and shown when something fails
        say({"type": "action", "action": chance.choice(legal)})
