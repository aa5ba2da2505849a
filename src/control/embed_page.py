#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the C source that holds the page, and the policy that lets browsers run its script and style and nothing else.

usage: embed_page.py PAGE.html PAGE.c
"""
import base64
import hashlib
import pathlib
import re
import sys


def hashes(page, tag):
    """What stands between each pair of these tags, as browsers want it named."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), page, re.DOTALL)
    if not found:
        sys.exit(f"embed_page: the page has no <{tag}>")
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in found)


def main():
    page = pathlib.Path(sys.argv[1]).read_bytes()
    policy = (f"default-src 'none'; script-src {hashes(page, 'script')}; style-src {hashes(page, 'style')}; "
              "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    rows = [", ".join(f"0x{byte:02x}" for byte in page[at:at + 16]) for at in range(0, len(page), 16)]
    pathlib.Path(sys.argv[2]).write_text(
        "/* SPDX-License-Identifier: BSD-3-Clause */\n"
        '#include "control/http.h"\n\n'
        "const unsigned char http_page[] = {\n\t" + ",\n\t".join(rows) + ",\n};\n\n"
        "const size_t http_page_size = sizeof(http_page);\n\n"
        f'const char http_page_policy[] = "{policy}";\n', encoding="ascii")


main()
