"""Texts that try to be more than text."""

HOSTILE = "<img src=x onerror=\"window.hacked = 'yes'\"><script>window.hacked = 'yes'</script>"
BACKWARDS = "\u202etxt.exe\u202c"
