"""``python -m bench.hub_profile FILE OPTIONS``: the Hub service, with a profile of its event loop by processor time."""

from __future__ import annotations

import cProfile
import sys
import time

from jupyter_agentbox.hub.app import main

profile = cProfile.Profile(time.thread_time)
code = profile.runcall(main, sys.argv[2:])
profile.dump_stats(sys.argv[1])
sys.exit(code)
