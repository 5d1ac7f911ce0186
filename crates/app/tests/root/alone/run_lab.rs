//! A method whose result is known in advance.

use crate::run_lab::median;
use crate::support::{PlanDir, elements, when_idle};

/// A step of load at 100 Mb/s, which a busy machine supports too: 42 and 128 ms of queue.
const STEP: &str = "method = \"switch-buffer\"\npause = 0\n\
    [lab]\ntopology = \"gigabit-switch-4\"\nset = { \"switch.s.alpha\" = 64, \"link.c.rate\" = \"100M\" }\n\
    [flow.step]\nfrom = \"a\"\nto = \"c\"\nat = \"1s\"\ntest = { rate = \"80M\" }\n\
    [flow.noise]\nfrom = \"b\"\nto = \"c\"\ncross_traffic = true\ntest = { rate = \"40M\" }\n\
    [test]\nudp = true\nupload = true\nlength = 1472\nduration = \"2s\"\ninterval = \"10ms\"\n\
    [axis.buffer]\nkey = \"lab.buffer\"\nvalues = [\"512KiB\", \"1600kB\"]\n";

/// The result is in bytes on the wire, 2 % more than the frame bytes that the switch counts; the method
/// promises an accuracy of 10 %.
#[test]
#[ignore = "needs root and network namespaces"]
fn buffers_of_known_size_are_found() {
    when_idle("buffers_of_known_size_are_found", || {
        let bench = PlanDir::new(STEP);
        let done = bench.run(&["--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let document = done.json();
        for (point, bytes) in [(0, 524_288.0), (1, 1.6e6)] {
            let found = median(&document, point, "step", "buffer");
            assert!((found / bytes - 1.0).abs() < 0.1, "{found} instead of {bytes}");
        }
        // The table of estimates and that of suitable sizes.
        assert_eq!(elements(&document["tables"]).len(), 2, "{document}");
    });
}
