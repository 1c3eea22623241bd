"""Pieces that mean something in a format, to be put where they do not belong."""

from __future__ import annotations

CSV_WORDS = (
    *(b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"'"),
    *(b"=1+1", b"@x", b"NA", b"null", b"true", b"0x1", b"1e999", b"-0", b"00501", b"inf", b"nan", b"9" * 30, b"1,5"),
    *(b"2020-02-31", b"2020-08-09T10:00", b"9999-12-31 23:59:59.999999", b"0000-00-00", b" ", b"," * 99, b"\\"),
    # Digits, blanks, a minus and a line end that are not ASCII.
    *(
        text.encode()
        for text in ("\u0661\u0662", "\u00a01", "\uff11\uff12", "\u22121", "\u2028", "1_000", "\x1a", "\x0b1")
    ),
)
YAML_WORDS = (
    *(b"!!python/object/apply:os.system ['true']", b"!!python/name:os.system", b"&a ", b"*a", b"<<: ", b"? ", b"- "),
    *(b"[", b"]", b"{", b"}", b": ", b"\n", b"\n  ", b"\t", b"|", b">", b"!!binary ", b"!!set ", b"%YAML 9.9\n"),
    *(b"!!timestamp 2001-99-99", b"2001-99-99", b"0x_", b"1:99:99", b"0b2", b"~", b".inf", b".nan", b"!!int x"),
    *(b"'", b'"', b"#", b"@", b"`", b"\xff", b"\\ud800", b'"\\U00110000"', b"!<x> ", b"!!omap [a]", b"!!float x"),
    *(b"[" * 500, b"---\n", b"1e999", b"- " * 300, b"9" * 5000),
)
ADDRESS_WORDS = (
    *(b"@", b":", b"/", b"?", b"&", b"#", b"%", b"[", b"]", b"..", b"\\", b"\0", b"://", b"table=", b"password=", b" "),
    *(b"dsn_env=", b"query=", b"%40", b"\n", b"\x1b[31m"),
)
NAME_WORDS = (
    *(
        b"../",
        b"..",
        b"/",
        b"\\",
        b"\0",
        b"manifests",
        b"CON",
        b"%2e%2e",
        b"|",
        b".",
        b"~",
        b"\n",
        b"c:",
        b"//",
        b"x" * 300,
    ),
    *(text.encode() for text in ("\uff0e\uff0e", "\u202e", "\u2215", "é")),
)
