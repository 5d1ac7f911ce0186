//! `linerate compare`: compares files and runs.

use serde_json::Value;

use crate::support::TestDir;

/// A textual iperf3 result of ten seconds at this rate.
fn result(place: &TestDir, name: &str, mbps: f64) {
    let megabytes = mbps * 10.0 / 8.0 * 1e6 / f64::from(1 << 20);
    let lines = [
        "Connecting to host server, port 5201".to_owned(),
        "[  5] local 192.0.2.1 port 40000 connected to 192.0.2.2 port 5201".to_owned(),
        "[ ID] Interval           Transfer     Bitrate         Retr".to_owned(),
        format!(
            "[  5]   0.00-10.00  sec  {megabytes:.0} MBytes  {mbps:.0} Mbits/sec    3             sender"
        ),
        format!(
            "[  5]   0.00-10.00  sec  {megabytes:.0} MBytes  {mbps:.0} Mbits/sec                  receiver"
        ),
    ];
    std::fs::write(place.folder.file(name), lines.join("\n") + "\n").unwrap();
}

/// Six results around 900 Mb/s and six around 940, in files `s0` to `s5` and `f0` to `f5`.
fn twelve(place: &TestDir) -> (String, String) {
    let names = |letter: &str, mbps: f64| {
        let file = |number: u32| {
            let name = format!("{letter}{number}");
            result(place, &name, mbps + f64::from(number));
            name
        };
        (0..6).map(file).collect::<Vec<_>>().join(",")
    };
    (format!("slow={}", names("s", 900.0)), format!("fast={}", names("f", 940.0)))
}

#[test]
fn repeats_in_files_show_which_is_better() {
    let place = TestDir::new();
    let (slow, fast) = twelve(&place);
    let found = place.json(&["compare", "--json", &slow, &fast]);
    assert_eq!(found["schema"], "linerate.compare/1");
    let goodput: Vec<&Value> = found["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|comparison| comparison["quantity"] == "goodput")
        .collect();
    let [goodput] = goodput[..] else { panic!("{found}") };
    assert_eq!((&goodput["outcome"], &goodput["better"]), (&"higher".into(), &true.into()));
    assert_eq!((goodput["candidate"].as_str(), goodput["base"]["repeats"].as_u64()), (Some("fast"), Some(6)));
    assert!((goodput["shift"].as_f64().unwrap() - 40e6).abs() < 1e5, "{goodput}");
    let text = place.run(&["compare", &fast, &slow]).stdout;
    // Wherever the lines break.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("worse: -4.2") && text.contains("too few repeats to test independence"), "{text}");
    assert_eq!(goodput["independence_unknown"], true, "{goodput}");
    assert!(text.contains("Of ") && text.contains("0 better, 1 worse."), "{text}");
}

#[test]
fn a_comparison_is_a_page_or_the_remedy_is_printed() {
    let place = TestDir::new();
    let (slow, fast) = twelve(&place);
    let output = place.run(&["compare", &slow, &fast, "--report", "both.html"]);
    if output.code != Some(0) {
        assert!(output.stderr.contains("make ui"), "{}", output.stderr);
        assert_eq!(output.stdout, "", "nothing is compared without its page");
        return;
    }
    let page = std::fs::read_to_string(place.folder.file("both.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(page.contains("fast is 4.4 % faster than slow ("), "{page}");
    assert!(output.stdout.contains("better: +4.4"), "{}", output.stdout);
    let refused = place.run(&["compare", &slow, &fast, "--report", "both.txt"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("must end in .html"), "{}", refused.stderr);
}

#[test]
fn a_run_of_the_archive_is_compared_with_a_file() {
    let place = TestDir::new();
    result(&place, "one", 900.0);
    let run = place.json(&["import", "--json", "one"])["runs"][0]["id"].as_str().unwrap().to_owned();
    let text = place.run(&["compare", &run, "one"]).stdout;
    assert!(text.contains("1 and 1 repeats are too few; measure at least 4 of each"), "{text}");
    let gone = place.run(&["compare", &run, "ffff"]);
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(gone.stderr.contains("ffff"), "{}", gone.stderr);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let place = TestDir::new();
    result(&place, "one", 900.0);
    std::fs::write(place.folder.file("none"), "no result at all\n").unwrap();
    let mistakes: [(&[&str], i32, &str); 5] = [
        (&["compare", "one"], 2, "--axis"),
        (&["compare", "one", "one", "-q", "godput"], 2, "'goodput'"),
        (&["compare", "one", "one", "--axis", "window"], 2, "name one run"),
        (&["compare", "one", "none"], 1, "none"),
        (&["compare"], 2, "RUN"),
    ];
    for (words, code, culprit) in mistakes {
        let output = place.run(words);
        let stderr = output.stderr;
        assert_eq!(output.code, Some(code), "{words:?}: {stderr}");
        assert!(stderr.contains(culprit), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
    let import = place.json(&["import", "--json", "one"]);
    let run = import["runs"][0]["id"].as_str().unwrap();
    let output = place.run(&["compare", run, "--axis", "window"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("not a run of a plan"), "{}", output.stderr);
}
