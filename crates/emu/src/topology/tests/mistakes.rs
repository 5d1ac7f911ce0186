//! Invalid files, and the resulting errors.

use super::*;

#[test]
fn what_is_no_toml() {
    let cases = [
        (
            "name = \"x",
            "net.toml:1:10: not TOML: invalid basic string, expected `\"`; see toml.io for the syntax",
        ),
        ("\n[host.a\n", "net.toml:2:8: not TOML: unclosed table, expected `]`; see toml.io for the syntax"),
        (
            "[host.a]\n[host.b]\n[host.a]\n",
            "net.toml:3:7: 'a' is declared twice; remove one of the declarations",
        ),
        (
            "[link.a]\nrate = 1\nmtu = 1500\nrate = 2\n",
            "net.toml:4:1: 'rate' is declared twice; remove one of the declarations",
        ),
        (
            "name = x\nabout = y\n",
            "net.toml:1:8: not TOML: string values must be quoted, expected literal string; see toml.io for the syntax\n\
             net.toml:2:9: not TOML: string values must be quoted, expected literal string; see toml.io for the syntax",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text, &[]), expected);
    }
}

#[test]
fn names_nodes_and_ports() {
    check(&[
        (
            "switch.a = {}\nlink.c.ends = [\"a\", \"s\"]\n",
            "net.toml:6:8: 'a' is a host and a switch; rename one of them\n\
             net.toml:7:15: link.c.ends: link 'a' already joins 'a' and 's'; use one link with members = 2",
        ),
        (
            "host.A_b = {}\nlink.c.ends = [\"A_b\", \"s\"]\n",
            "net.toml:6:6: 'A_b' cannot be a name; use lower-case letters, digits and hyphens, and do not \
             begin with a hyphen",
        ),
        (
            "[link.a23456789-123456789-123456789-xyz]\nends = [\"s\", \"t\"]\n[switch.t]\n",
            "net.toml:6:7: 'a23456789-123456789-123456789-xyz' has 33 characters; use at most 32",
        ),
        (
            "host.c = {}\n",
            "net.toml:6:6: no link ends at host 'c'; add one with ends = [\"c\", \"…\"] or remove it",
        ),
        (
            "switch.t = {}\n",
            "net.toml:6:8: no link ends at switch 't'; add one with ends = [\"t\", \"…\"] or remove it",
        ),
        (
            "switch.t = {}\nlink.c.ends = [\"s\", \"tt\"]\n",
            "net.toml:6:8: no link ends at switch 't'; add one with ends = [\"t\", \"…\"] or remove it\n\
             net.toml:7:21: link.c.ends: no host or switch is named 'tt'; did you mean 't'?",
        ),
        (
            "link.c.ends = [\"s\", \"s\"]\n",
            "net.toml:6:21: link.c.ends: both ends are 's'; a link joins two nodes",
        ),
        (
            "link.c.ends = [\"s\"]\n",
            "net.toml:6:15: link.c.ends: 1 ends are not a list of two nodes such as [\"a\", \"s\"]",
        ),
        ("link.c.rate = 1e9\n", "net.toml:6:6: link 'c' has no ends; add ends = [\"…\", \"…\"]"),
        (
            "[link.c]\nends = [\"a\", \"b\"]\n",
            "net.toml:7:8: link.c.ends: this closes a loop with 'a', 'b', in which packets would circulate forever; remove one link, or write parallel links as one link with members\n\
             net.toml:7:9: link.c.ends: the port of host 'a' is already used by link 'a'; put a switch between them\n\
             net.toml:7:14: link.c.ends: the port of host 'b' is already used by link 'b'; put a switch between them",
        ),
        (
            "switch.t = {}\nlink.c.ends = [\"a\", \"t\"]\n",
            "net.toml:7:16: link.c.ends: the port of host 'a' is already used by link 'a'; put a switch \
             between them",
        ),
    ]);
}

#[test]
fn loops_and_parallel_links() {
    let ring = "switch = { t = {}, u = {} }\nlink.one.ends = [\"s\", \"t\"]\nlink.two.ends = [\"t\", \"u\"]\n\
        link.three.ends = [\"u\", \"s\"]\n";
    let base = PAIR.replace("switch.s = {}\n", "\n");
    assert_eq!(
        refused(&format!("{base}{}", ring.replace("{ t", "{ s = {}, t")), &[]),
        "net.toml:9:19: link.three.ends: this closes a loop with 'two', 'one', in which packets would \
         circulate forever; remove one link, or write parallel links as one link with members"
    );
    let parallel = "switch.t = {}\nlink.one.ends = [\"s\", \"t\"]\nlink.two.ends = [\"t\", \"s\"]\n";
    check(&[(
        parallel,
        "net.toml:8:17: link.two.ends: link 'one' already joins 't' and 's'; use one link with members = 2",
    )]);
}

#[test]
fn an_empty_file_describes_no_network() {
    assert_eq!(refused("", &[]), "net.toml:1:1: the topology has no host; add one with [host.NAME]");
    let error = read("[host.a]\n", "My Net.toml", &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "My Net.toml:1:1: the network has no name, and the file name 'My Net' cannot serve as one; write name = \"my-network\"\n\
         My Net.toml:1:7: no link ends at host 'a'; add one with ends = [\"a\", \"…\"] or remove it"
    );
    assert_eq!(parse(PAIR, &[]).name, "net", "the file's name");
}

#[test]
fn unknown_keys_and_tables() {
    check(&[
        ("link.a.dealy = 1\n", "net.toml:6:8: unknown key link.a.dealy; did you mean 'delay'?"),
        ("links.a.delay = 1\n", "net.toml:6:1: unknown key links; did you mean 'link'?"),
        (
            "[switch.t]\ncolour = 1\n[link.t]\nends = [\"s\", \"t\"]\n",
            "net.toml:7:1: unknown key switch.t.colour; known are alpha, buffer, sharing",
        ),
        (
            "link.a.loss_burst = { to_bad = 0.1, to_god = 0.1 }\n",
            "net.toml:6:37: unknown key link.a.loss_burst.to_god; did you mean 'to_good'?",
        ),
        (
            "link.a.loss_burst = 0.1\n",
            "net.toml:6:21: link.a.loss_burst: 0.1 is not a table of to_bad, to_good, loss_good, loss_bad",
        ),
        (
            "link.a.from.b.loss = 0.1\n",
            "net.toml:6:13: link.a.from.b: the link joins 'a' and 's'; name one of them",
        ),
        (
            "link.a.from.s.members = 2\n",
            "net.toml:6:15: members applies to the whole link; write it in [link.a]",
        ),
        ("link.a.from.s.rat = 2\n", "net.toml:6:15: unknown key link.a.from.s.rat; did you mean 'rate'?"),
        ("link.a.from = 3\n", "net.toml:6:8: link.a.from is 3; write [link.a.from.NODE]"),
        ("link.c = 3\n", "net.toml:6:6: link.c is 3; write [link.NAME]"),
    ]);
    assert_eq!(refused("host = 3\n", &[]), "net.toml:1:1: host is 3; write [host.NAME] for each host");
    assert_eq!(
        refused("[[link]]\nends = 1\n", &[]),
        "net.toml:1:3: link is a list; write [link.NAME] for each link"
    );
}

#[test]
fn values_that_cannot_be() {
    check(&[
        (
            "link.a.rate = -1\n",
            "net.toml:6:15: link.a.rate: '-1' is negative (example: 100M, 2.5Gb/s, 80k (decimal: 1M is 1000000 bit/s))",
        ),
        (
            "link.a.rate = 0\n",
            "net.toml:6:15: link.a.rate: 0 b/s is outside 1 kb/s to 1 Tb/s; write \"none\" for no limit",
        ),
        (
            "link.a.rate = \"9000G\"\n",
            "net.toml:6:15: link.a.rate: 9.000 Tb/s is outside 1 kb/s to 1 Tb/s; write \"none\" for no limit",
        ),
        ("link.a.rate = [1]\n", "net.toml:6:15: link.a.rate: a list is not a rate such as \"100M\""),
        (
            "link.a.delay = \"5 parsecs\"\n",
            "net.toml:6:16: link.a.delay: unknown unit 'parsecs' in '5 parsecs'; known units are ns us ms s \
             m h (a bare number is seconds) (example: 10 or 10s, 250ms, 2m, 1h)",
        ),
        ("link.a.delay = \"2h\"\n", "net.toml:6:16: link.a.delay: 7200 s is above 3600 s; use less"),
        ("link.a.buffer = \"2T\"\n", "net.toml:6:17: link.a.buffer: 2 TiB is above 1 TiB; use less"),
        (
            "link.a.loss = 1.5\n",
            "net.toml:6:15: link.a.loss: 150.0 % is above 100 %; write a probability as 0 to 1, or as 0 to \
             100 with %",
        ),
        (
            "link.a.loss = \"101%\"\n",
            "net.toml:6:15: link.a.loss: 101.0 % is above 100 %; write a probability as 0 to 1, or as 0 to \
             100 with %",
        ),
        (
            "link.a.loss = inf\n",
            "net.toml:6:15: link.a.loss: 'inf' does not start with a number (example: 1% or 0.01)",
        ),
        ("link.a.mtu = 575\n", "net.toml:6:14: link.a.mtu: 575 is not a whole number from 576 to 65521"),
        ("link.a.mtu = 65522\n", "net.toml:6:14: link.a.mtu: 65522 is not a whole number from 576 to 65521"),
        ("link.a.tags = 3\n", "net.toml:6:15: link.a.tags: 3 is not a whole number from 0 to 2"),
        ("link.a.members = 0\n", "net.toml:6:18: link.a.members: 0 is not a whole number from 1 to 16"),
        ("link.a.members = 17\n", "net.toml:6:18: link.a.members: 17 is not a whole number from 1 to 16"),
        (
            "link.a.hash = []\n",
            "net.toml:6:15: link.a.hash: the list is empty; write a list of some of mac, ip, ports",
        ),
        (
            "link.a.hash = [\"port\"]\n",
            "net.toml:6:15: link.a.hash: 'port' is unknown; choose from mac, ip, ports",
        ),
        ("link.a.overtake = \"true\"\n", "net.toml:6:19: link.a.overtake: 'true' is not true or false"),
        (
            "link.a.too_big = \"loud\"\n",
            "net.toml:6:18: link.a.too_big: 'loud' is unknown; choose from silent, icmp",
        ),
        ("link.a.loss_every = 0\n", "net.toml:6:21: link.a.loss_every: 0 is not a whole number from 1"),
        (
            "link.a.loss_times = [\"1s\", \"x\"]\n",
            "net.toml:6:21: link.a.loss_times: 'x' does not start with a number (example: 10 or 10s, 250ms, 2m, 1h)",
        ),
        ("seed = -1\n", "net.toml:6:8: seed: -1 is not a whole number from 0"),
        ("about = \"two\\nlines\"\n", "net.toml:6:9: about: contains a control character; write one line"),
    ]);
}

#[test]
fn values_that_do_not_go_together() {
    check(&[
        (
            "link.a.buffer = \"1500B\"\n",
            "net.toml:6:17: link.a: buffer of 1500 B is smaller than one frame of MTU 1500; make it at least 1518",
        ),
        (
            "link.a.buffer = 1521\nlink.a.tags = 1\n",
            "net.toml:6:17: link.a: buffer of 1521 B is smaller than one frame of MTU 1500; make it at least 1522",
        ),
        (
            "link.a.police_rate = 1e6\nlink.a.police_burst = 1000\n",
            "net.toml:7:23: link.a: police_burst of 1000 B is smaller than one frame of MTU 1500; make it at least 1518",
        ),
        (
            "link.a.police_burst = 5000\n",
            "net.toml:6:23: link.a.police_burst: has no effect without police_rate; add police_rate or remove this key",
        ),
        (
            "link.a.shape_rate = 1e6\nlink.a.shape_burst = 1000\n",
            "net.toml:7:22: link.a: shape_burst of 1000 B is smaller than one frame of MTU 1500; make it at least 1518",
        ),
        (
            "link.a.discipline = \"red\"\nlink.a.red_min = 5000\nlink.a.red_max = 5000\n",
            "net.toml:7:18: link.a: red_min (4.88 KiB) is not below red_max (4.88 KiB); red_max is usually \
             three times red_min",
        ),
        (
            "link.a.red_min = 5000\n",
            "net.toml:6:18: link.a.red_min: has no effect without discipline = \"red\"; add discipline = \"red\" or remove this key",
        ),
        (
            "link.a.discipline = \"rad\"\nlink.a.red_min = 5000\n",
            "net.toml:6:21: link.a.discipline: 'rad' is unknown; choose from tail-drop, red, codel",
        ),
        (
            "link.a.discipline = \"codel\"\nlink.a.codel_target = \"1s\"\n",
            "net.toml:7:23: link.a: codel_target (1 s) is not below codel_interval (100 ms); it is usually \
             5 to 10 % of it",
        ),
        (
            "link.a.ecn = true\n",
            "net.toml:6:14: link.a.ecn: has no effect without discipline = \"red\" or \"codel\"; add discipline = \"red\" or \"codel\" or remove this key",
        ),
        (
            "link.a.loss = 0.1\nlink.a.loss_every = 100\n",
            "net.toml:7:8: link.a: 'loss' and 'loss_every' are alternative loss models; keep one",
        ),
        (
            "link.a.loss_burst.to_good = 0.1\n",
            "net.toml:6:29: link.a.loss_burst.to_good: has no effect without loss_burst.to_bad; add loss_burst.to_bad or remove this key",
        ),
        (
            "link.a.mtu = 9000\n",
            "net.toml:5:6: link.b: MTU 1500, but host 'a' sends packets of up to 9000 bytes; make them \
             equal, or set too_big to choose what happens to larger packets",
        ),
        (
            "link.a.mtu = 9000\nlink.a.from.s.mtu = 8000\nlink.b.mtu = 9000\n",
            "net.toml:7:21: link.a: the MTU is 9000 from 'a' and 8000 from 's'; both directions of a link \
             must have the same",
        ),
    ]);
}

#[test]
fn a_shared_buffer_holds_a_frame_for_each_port() {
    let shared = |buffer: &str, more: &str| {
        PAIR.replace("switch.s = {}", &format!("switch.s = {{ {buffer} }}")) + more
    };
    let cases = [
        (
            shared("buffer = 3035", ""),
            "net.toml:3:23: switch.s.buffer: 3035 B is less than one frame per port; make it at least 3036",
        ),
        (
            shared("buffer = 6071", "link.a.members = 3\n"),
            "net.toml:3:23: switch.s.buffer: 6071 B is less than one frame per port; make it at least 6072",
        ),
        (
            shared("alpha = 1", ""),
            "net.toml:3:22: switch.s.alpha: has no effect without buffer; add buffer or remove this key",
        ),
        (shared("buffer = 9999, alpha = 0", ""), "net.toml:3:37: switch.s.alpha: 0 is not a number above 0"),
        (
            shared("buffer = 9999, alpha = -1.5", ""),
            "net.toml:3:37: switch.s.alpha: -1.5 is not a number above 0",
        ),
        (
            shared("buffer = 9999, sharing = \"static\", alpha = 2", ""),
            "net.toml:3:57: switch.s.alpha: has no effect without sharing = \"dynamic\"; add sharing = \"dynamic\" or remove this key",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(&text, &[]), expected);
    }
    // The buffer of a link from a switch with shared memory is not used, and therefore not checked.
    parse(&shared("buffer = 9999", "link.a.from.s.buffer = 1\n"), &[]);
}

#[test]
fn addresses_are_of_one_network_and_each_is_used_once() {
    let with = |a: &str, b: &str| {
        PAIR.replace("a = {}", &format!("a = {{ {a} }}")).replace("b = {}", &format!("b = {{ {b} }}"))
    };
    let cases = [
        (
            with("", "address = \"10.77.0.1/24\""),
            "net.toml:2:22: host.b.address: 10.77.0.1 is already the address of host 'a'; use another one",
        ),
        (
            with("", "address = \"10.78.0.2/24\""),
            "net.toml:2:22: host.b.address: 10.78.0.2 is in 10.78.0.0/24, but host 'a' is in 10.77.0.0/24; \
             there is no router between the hosts, so give all of them addresses of one network",
        ),
        (
            with("", "address6 = \"fd78::2/64\""),
            "net.toml:2:23: host.b.address6: fd78::2 is in fd78::/64, but host 'a' is in fd77::/64; there \
             is no router between the hosts, so give all of them addresses of one network",
        ),
        (
            with("", "address = \"10.77.0.2\""),
            "net.toml:2:22: host.b.address: '10.77.0.2' is not an address with prefix length; write it like \
             10.77.0.1/24",
        ),
        (
            with("address = \"10.77.0.0/24\"", ""),
            "net.toml:1:22: host.a.address: 10.77.0.0/24 is the address of a network, not of a host; change \
             its last number",
        ),
        (
            with("sysctl = { tcp_rmem = \"1\" }", ""),
            "net.toml:1:12: host.a.sysctl: 'tcp_rmem' is not a setting below net.; write it like \
             ipv4.tcp_rmem",
        ),
        (
            with("congestion = \"Cubic!\"", ""),
            "net.toml:1:25: host.a.congestion: 'Cubic!' cannot be a name; use lower-case letters, digits \
             and hyphens, and do not begin with a hyphen",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(&text, &[]), expected);
    }
}

#[test]
fn parameters() {
    check(&[
        (
            "parameters.buffer = 5000\n",
            "net.toml:6:12: parameter 'buffer' is not used; use it as \"$buffer\" or remove it",
        ),
        (
            "link.a.buffer = \"$bufer\"\nlink.b.buffer = \"$buffer\"\nparameters.buffer = 5000\n",
            "net.toml:6:17: parameter 'bufer' is not declared in [parameters]; did you mean 'buffer'?",
        ),
        (
            "link.a.buffer = \"$buffer\"\n",
            "net.toml:6:17: parameter 'buffer' is not declared; add [parameters] with buffer = …",
        ),
        (
            "parameters = 5\n",
            "net.toml:6:1: parameters must be a table; write [parameters] and name = value below it",
        ),
        (
            "link.a.delay = \"$d\"\n[parameters]\nd = {}\n",
            "net.toml:6:8: link.a.delay: a table is not a time such as \"25ms\"\n\
             net.toml:8:1: parameter 'd' is a table; give it a text or a number",
        ),
    ]);
    // A wrong value of a parameter is reported at the position of the value.
    check(&[(
        "link.a.buffer = \"$b\"\nparameters.b = \"5Q\"\n",
        "net.toml:7:16: link.a.buffer: unknown unit 'Q' in '5Q'; known units are K M G T (binary), KiB MiB \
         GiB TiB (binary), kB MB GB TB (decimal), B (example: 64K or 64KiB (65536 bytes), 1MB (1000000 \
         bytes))",
    )]);
    let text = format!(
        "{PAIR}link.a.buffer = \"$b\"\nlink.a.loss_times = [\"$t\", 2]\nparameters = {{ b = \"64MB\", t = \"1s\" }}\n"
    );
    let buffer = |typed: &[&str]| parse(&text, typed).links[0].directions[0].buffer.get();
    assert_eq!(buffer(&[]), 64_000_000);
    assert_eq!(buffer(&["b=36MB"]), 36_000_000);
    assert_eq!(
        buffer(&["link.a.buffer=1MB"]),
        1_000_000,
        "the parameter is used in the file, so it is no mistake"
    );
    let times = [1, 2].map(|s| Timestamp::from_ns(s * 1_000_000_000)).to_vec();
    assert_eq!(parse(&text, &[]).links[0].directions[1].loss, Loss::AtTimes(times));
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    check(&[(
        "[link.c]\nends = [\"s\", \"z\"]\nrate = -5\nmtu = 5\n[host.c]\naddress = \"x\"\n",
        "net.toml:7:14: link.c.ends: no host or switch is named 'z'; known are a, b, c, s\n\
         net.toml:8:8: link.c.rate: '-5' is negative (example: 100M, 2.5Gb/s, 80k (decimal: 1M is 1000000 bit/s))\n\
         net.toml:9:7: link.c.mtu: 5 is not a whole number from 576 to 65521\n\
         net.toml:10:7: no link ends at host 'c'; add one with ends = [\"c\", \"…\"] or remove it\n\
         net.toml:11:11: host.c.address: 'x' is not an address with prefix length; write it like 10.77.0.1/24",
    )]);
}
