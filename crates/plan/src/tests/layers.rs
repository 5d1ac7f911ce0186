//! Precedence if several places set the same key.

use expect_test::expect;
use linerate_units::{Bytes, Span};

use super::{TestSurroundings, plan, source, try_plan};
use crate::{Plan, TrialOrder, read};

fn windows(plan: &Plan) -> Vec<Option<u64>> {
    (0..plan.grid.len())
        .flat_map(|number| plan.point(number).unwrap().tests)
        .map(|test| test.spec.socket.window.map(Bytes::get))
        .collect()
}

#[test]
fn the_nearer_setting_wins() {
    let flows = "[flow.x]\nfrom = \"a\"\nto = \"b\"\n[flow.y]\nfrom = \"a\"\nto = \"b\"\n";
    assert_eq!(windows(&plan(flows)), [None, None], "the default");
    assert_eq!(windows(&plan(&format!("test.window = 100\n{flows}"))), [Some(100), Some(100)], "the plan");
    let swept = format!("test.window = 100\naxis.window = [200, \"default\"]\n{flows}");
    assert_eq!(windows(&plan(&swept)), [Some(200), Some(200), None, None], "the point over the plan");
    let own = format!("{swept}test = {{ window = 300 }}\n");
    assert_eq!(
        windows(&plan(&own)),
        [Some(200), Some(300), None, Some(300)],
        "a flow's own over the point of all"
    );
    let of_one = own.replace("axis.window =", "axis.own.key = \"flow.y.window\"\naxis.own.values =");
    assert_eq!(windows(&plan(&of_one)), [Some(100), Some(200), Some(100), None], "an axis over that flow");
    let flag = try_plan(&own, &["test.window=7"]).unwrap();
    assert_eq!(windows(&flag), [Some(7), Some(7)], "the command line over everything, and its axis is gone");
}

#[test]
fn settings_of_the_command_line_reach_every_kind_of_key() {
    let text = "axis.window = [1000, 2000]\n[lab]\ntopology = \"two\"\n";
    let set = [
        "repeats=4",
        "order=shuffled",
        "seed=9",
        "axis.window=3K,4K,5K",
        "lab.set.buffer=1MB",
        "host.a.mtu=9000",
    ];
    let plan = try_plan(text, &set).unwrap();
    assert_eq!((plan.repeats, plan.order, plan.seed), (4, TrialOrder::Shuffled, 9));
    assert_eq!(windows(&plan), [Some(3072), Some(4096), Some(5120)]);
    let point = plan.point(0).unwrap();
    assert_eq!(point.lab.unwrap().set["buffer"], "1MB");
    assert_eq!(point.hosts["a"]["mtu"].to_string(), "9000");
}

#[test]
fn a_host_of_the_lab_gets_an_address_and_a_plan_a_note_on_the_command_line() {
    let text = source("[lab]\ntopology = \"two\"\n");
    let settings = ["host.a.address=192.0.2.1", "notes.nic=X710"].map(str::to_owned);
    let plan = read(text, &settings, &TestSurroundings(&[])).unwrap();
    assert_eq!(plan.hosts[0].address.as_deref(), Some("192.0.2.1"));
    assert_eq!(plan.notes["nic"], "X710");
    let other =
        read(source("[lab]\ntopology = \"two\"\n"), &["host.c.mtu=9000".to_owned()], &TestSurroundings(&[]));
    expect!["--set host.c.mtu=9000: the plan has no host 'c'; known are a, b"]
        .assert_eq(&other.unwrap_err().to_string());
}

#[test]
fn axes_reach_hosts_and_the_lab() {
    let text = "[lab]\ntopology = \"two\"\n[axis.mtu]\nkey = \"host.*.mtu\"\nvalues = [1500, \"default\"]\n\
                [axis.buffer]\nkey = \"lab.buffer\"\nvalues = [\"1MB\", 2]\n";
    let plan = plan(text);
    assert_eq!(plan.grid.len(), 4);
    let point = |number: usize| plan.point(number).unwrap();
    assert_eq!(point(0).hosts.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(point(2).hosts.is_empty(), "the default leaves a host as it is");
    let buffers: Vec<String> =
        (0..4).map(|number| point(number).lab.unwrap().set["buffer"].clone()).collect();
    assert_eq!(buffers, ["1MB", "2", "1MB", "2"]);
    assert!(plan.hosts.iter().all(|host| host.in_lab));
}

#[test]
fn what_is_included_holds_where_the_plan_says_nothing() {
    let around = TestSurroundings(&[
        (
            "test-bed.toml",
            "pause = \"9s\"\nabout = \"bed\"\ninclude = \"hosts.toml\"\n[test]\nduration = \"3s\"\nwindow = 100\n",
        ),
        ("hosts.toml", "[host.a]\naddress = \"192.0.2.1\"\n[host.b]\naddress = \"192.0.2.2\"\n"),
        ("late.toml", "about = \"late\"\n"),
    ]);
    let text = "include = [\"test-bed.toml\", \"late.toml\"]\n[test]\nwindow = 200\n";
    let plan = read(source(text), &[], &around).unwrap();
    assert_eq!(plan.pause, Span::from_secs(9));
    assert_eq!(plan.about, "late", "the later one");
    assert_eq!(windows(&plan), [Some(200)]);
    assert_eq!(plan.point(0).unwrap().tests[0].spec.traffic.duration, Some(Span::from_secs(3)));
    assert_eq!(plan.hosts[1].address.as_deref(), Some("192.0.2.2"));
    let files: Vec<&str> = plan.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["plan.toml", "late.toml", "test-bed.toml", "hosts.toml"]);
}

#[test]
fn a_changed_measurement_is_another_measurement_at_the_same_point() {
    let (short, long) =
        (plan("test.duration = 1\naxis.window = [1000]"), plan("test.duration = 2\naxis.window = [1000]"));
    let (short, long) = (short.point(0).unwrap(), long.point(0).unwrap());
    assert_eq!(short.id, long.id);
    assert_ne!(short.content, long.content);
}

#[test]
fn results_of_another_host_or_network_are_not_those_of_this_plan() {
    let content = |text: &str, around: &TestSurroundings| {
        read(source(text), &[], around).unwrap().point(0).unwrap().content
    };
    let lab = "[lab]\ntopology = \"two\"\n";
    let (slow, fast) = (TestSurroundings(&[("two", "rate = 1")]), TestSurroundings(&[("two", "rate = 2")]));
    assert_eq!(content(lab, &slow), content(lab, &slow));
    assert_ne!(content(lab, &slow), content(lab, &fast), "the topology of the same name");

    let hosts = "[flow.x]\nfrom = \"a\"\nto = \"b\"\n[host.a]\naddress = \"192.0.2.1\"\n[host.b]\n\
                 address = \"192.0.2.2\"\n[host.c]\naddress = \"192.0.2.3\"\n";
    let of = |text: &str| content(text, &TestSurroundings(&[]));
    assert_ne!(of(hosts), of(&hosts.replace("2.2", "2.4")), "another host of the same name");
    assert_ne!(of(hosts), of(&hosts.replace("2.2\"\n", "2.2\"\nport = 5202\n")), "another port forward");
    assert_eq!(of(hosts), of(&hosts.replace("2.3", "2.4")), "a host that no flow uses");
    let with = |line: &str| of(&hosts.replace("[host.b]\n", &format!("[host.b]\n{line}\n")));
    assert_eq!(of(hosts), with("interface = \"eth1\""), "nothing is set there");
    assert_ne!(with("mtu = 9000"), with("mtu = 9000\ninterface = \"eth1\""), "another interface is set");
}

#[test]
fn what_the_file_says_of_values_that_the_command_line_took_away_is_left_out() {
    let text = "zip = [[\"window\", \"streams\"]]\nexclude = [{ window = 1000, interval = 2 }, { interval = 3 }]\n\
                axis.window = [1000, 2000]\naxis.streams = [1, 4]\naxis.interval = [1, 2, 3]\n\
                assert = [\"loss < 1\", { that = \"rtt < 1s\", at = { window = 1000 } }, \"rtt < 2 point(window=2000).rtt\"]\n";
    let whole = plan(text);
    assert_eq!((whole.grid.len(), whole.assertions.len(), whole.left_out.len()), (2 * 3 - 1 - 2, 3, 0));
    for set in ["axis.window=7,8", "test.window=9"] {
        let less = try_plan(text, &[set]).unwrap();
        assert_eq!(less.grid.len(), 2 * 2, "{set}");
        assert_eq!(less.left_out, ["rtt < 1s", "rtt < 2 point(window=2000).rtt"], "{set}");
        assert_eq!(less.assertions.len(), 1, "{set}");
    }
    // Unrelated mistakes remain mistakes.
    let wrong = text.replace("loss < 1", "los < 1").replace("interval = 3", "interval = 4");
    let error = try_plan(&wrong, &["axis.window=7,8"]).unwrap_err().to_string();
    assert!(error.contains("4 is not a value of axis 'interval'"), "{error}");
    let error = try_plan(&text.replace("loss < 1", "los < 1"), &["test.window=9"]).unwrap_err().to_string();
    assert!(error.contains("there is no quantity 'los'"), "{error}");
}
