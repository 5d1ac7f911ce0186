//! Valid files, overrides, and changes while a lab runs.

use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::*;
use crate::link_direction::{Bucket, GilbertElliott, QueueDiscipline, TooBig};

#[test]
fn every_key_of_a_direction_goes_to_its_place() {
    let text = format!(
        "{PAIR}[link.c]\nends = [\"s\", \"t\"]\nmembers = 3\nhash = [\"mac\"]\nnic = false\nrate = \"10G\"\nmtu = 1400\n\
         too_big = \"icmp\"\ntags = 2\nbuffer = \"1MB\"\ndiscipline = \"red\"\nred_min = \"30kB\"\nred_max = \"90kB\"\n\
         red_probability = 0.02\nred_weight = 0.01\necn = true\npolice_rate = \"1G\"\npolice_burst = \"2MB\"\n\
         shape_rate = \"2G\"\nshape_burst = \"3MB\"\ndelay = 0.025\njitter = \"1ms\"\novertake = true\nduplicate = \"1%\"\n\
         reorder = \"2%\"\nreorder_by = \"3ms\"\n\
         loss_burst = {{ to_bad = 0.001, to_good = 0.5, loss_good = 1e-6, loss_bad = \"90%\" }}\n\
         [link.c.from.t]\ndiscipline = \"codel\"\ncodel_target = \"10ms\"\ncodel_interval = \"200ms\"\nloss_every = 7\n\
         red_min = 1\n[switch.t]\n"
    );
    // Settings of a direction for a discipline other than its own are mistakes.
    let error = refused(&text, &[]);
    assert!(error.contains("link.c.from.t.red_min: has no effect without discipline = \"red\""), "{error}");
    assert!(
        !error.contains("link.c.red_min"),
        "what is given for both directions holds for the other one: {error}"
    );
    let text = text.replace("red_min = 1\n", "");
    let topology = parse(&text, &[]);
    let link = topology.links.iter().find(|link| link.name == "c").unwrap();
    let ratio = |value| Ratio::new(value).unwrap();
    let rate = |bps| Bitrate::from_bps(bps).unwrap();
    assert_eq!((link.members, link.nic), (3, false));
    assert_eq!(link.hash, HashFields { mac: true, ip: false, ports: false });
    let [there, back] = &link.directions;
    for direction in [there, back] {
        assert_eq!(direction.rate, Some(rate(1e10)));
        assert_eq!((direction.mtu, direction.too_big, direction.framing.tags), (1400, TooBig::Icmp, 2));
        assert_eq!(direction.buffer, Bytes::new(1_000_000));
        assert_eq!(direction.police, Some(Bucket { rate: rate(1e9), burst: Bytes::new(2_000_000) }));
        assert_eq!(direction.shape, Some(Bucket { rate: rate(2e9), burst: Bytes::new(3_000_000) }));
        assert_eq!(direction.delay, Span::from_ms(25));
        assert_eq!((direction.jitter.most, direction.jitter.may_overtake), (Span::from_ms(1), true));
        assert_eq!(direction.duplicate, ratio(0.01));
        assert_eq!((direction.reorder.probability, direction.reorder.by), (ratio(0.02), Span::from_ms(3)));
    }
    let QueueDiscipline::Red(red) = there.discipline else { panic!("{there:?}") };
    assert_eq!((red.min, red.max, red.ecn), (Bytes::new(30_000), Bytes::new(90_000), true));
    assert_eq!((red.max_probability, red.weight), (ratio(0.02), ratio(0.01)));
    let QueueDiscipline::CoDel(codel) = back.discipline else { panic!("{back:?}") };
    assert_eq!((codel.target, codel.interval, codel.ecn), (Span::from_ms(10), Span::from_ms(200), true));
    let model = GilbertElliott {
        to_bad: ratio(1e-3),
        to_good: ratio(0.5),
        loss_good: ratio(1e-6),
        loss_bad: ratio(0.9),
    };
    assert_eq!(there.loss, Loss::Burst(model));
    assert_eq!(back.loss, Loss::EveryNth(7), "a direction with a model of its own has that one alone");
}

#[test]
fn what_is_not_given_has_its_default() {
    let text = format!(
        "{PAIR}link.a.police_rate = \"100M\"\nlink.b.police_rate = \"1M\"\nlink.b.discipline = \"red\"\n\
         link.b.buffer = \"1MB\"\n"
    );
    let topology = parse(&text, &[]);
    assert_eq!((topology.seed, topology.hosts[1].v4.0.to_string()), (1, "10.77.0.2".to_owned()));
    assert_eq!(topology.hosts[1].v6.0.to_string(), "fd77::2");
    let burst = |link: usize| topology.links[link].directions[0].police.unwrap().burst.get();
    // 100 Mb/s for 10 ms are 125000 bytes; 1 Mb/s for 10 ms are less than two frames of 1518.
    assert_eq!((burst(0), burst(1)), (125_000, 3036));
    let link = &topology.links[0];
    assert_eq!(link.hash, HashFields { mac: false, ip: true, ports: true });
    assert_eq!(
        link.directions[0],
        LinkDirection { police: link.directions[0].police, ..LinkDirection::default() }
    );
    // A twelfth and a quarter of the buffer.
    let QueueDiscipline::Red(red) = topology.links[1].directions[0].discipline else {
        panic!("{topology:?}")
    };
    assert_eq!((red.min, red.max, red.ecn), (Bytes::new(83_333), Bytes::new(250_000), false));
    assert_eq!((red.max_probability.get(), red.weight.get()), (0.1, 0.002));
}

#[test]
fn settings_win_over_the_file_and_later_ones_over_earlier_ones() {
    let text = format!(
        "{PAIR}link.a.delay = 1\nlink.a.from.s.delay = 2\nlink.b.loss = 0.5\nlink.b.from.s.loss_every = 9\n\
         [parameters]\nbuffer = 5000\n[link.c]\nends = [\"s\", \"t\"]\nbuffer = \"$buffer\"\n[switch.t]\nbuffer = 9999\n"
    );
    let delays = |typed: &[&str]| {
        parse(&text, typed).links[0].directions.clone().map(|direction| direction.delay.as_secs_f64())
    };
    assert_eq!(delays(&[]), [1.0, 2.0]);
    assert_eq!(delays(&["link.a.delay=5"]), [5.0, 5.0]);
    assert_eq!(delays(&["link.a.from.s.delay=5"]), [1.0, 5.0]);
    assert_eq!(delays(&["link.a.from.a.delay=7", "link.a.delay=5", "link.a.from.s.delay=6"]), [5.0, 6.0]);

    let losses =
        |typed: &[&str]| parse(&text, typed).links[1].directions.clone().map(|direction| direction.loss);
    let half = Loss::Random(Ratio::new(0.5).unwrap());
    assert_eq!(losses(&[]), [half.clone(), Loss::EveryNth(9)]);
    assert_eq!(losses(&["link.b.loss_every=3"]), [Loss::EveryNth(3), Loss::EveryNth(3)]);
    assert_eq!(losses(&["link.b.from.s.loss=0"]), [half, Loss::None]);
    let bursts = losses(&["link.b.loss_burst.to_bad=0.1"]);
    assert!(matches!(bursts, [Loss::Burst(_), Loss::Burst(_)]), "{bursts:?}");

    let other = parse(
        &text,
        &[
            "seed=7",
            "buffer=6000",
            "host.a.congestion=reno",
            "switch.t.alpha=2",
            "link.c.hash=ip,mac",
            "host.a.sysctl.ipv4.tcp_rmem=1 2 3",
            "link.c.loss_times=2s,1s",
            "link.c.overtake=true",
        ],
    );
    assert_eq!((other.seed, other.links[2].directions[0].buffer), (7, Bytes::new(6000)));
    assert_eq!(other.hosts[0].congestion.as_deref(), Some("reno"));
    assert_eq!(other.hosts[0].sysctl["ipv4.tcp_rmem"], "1 2 3");
    let dynamic = SharedBuffer { capacity: Bytes::new(9999), policy: BufferSharing::Dynamic { alpha: 2.0 } };
    assert_eq!(other.switches[1].shared, Some(dynamic));
    assert_eq!(other.links[2].hash, HashFields { mac: true, ip: true, ports: false });
    let red = format!("{PAIR}link.a.discipline = \"red\"\nlink.a.red_min = 9000\n");
    let disciplines = parse(&red, &["link.a.discipline=codel"]).links[0]
        .directions
        .clone()
        .map(|direction| direction.discipline);
    assert!(matches!(disciplines, [QueueDiscipline::CoDel(_), QueueDiscipline::CoDel(_)]), "{disciplines:?}");
    assert!(
        refused(&red, &["link.a.discipline=codel", "link.a.red_max=9999"])
            .starts_with("--set link.a.red_max=9999: ")
    );

    let times = [1, 2].map(|s| Timestamp::from_ns(s * 1_000_000_000)).to_vec();
    assert_eq!(other.links[2].directions[0].loss, Loss::AtTimes(times));
}

#[test]
fn a_setting_that_is_wrong_is_named() {
    let cases = [
        (
            "bufer=1",
            "--set bufer=1: 'bufer' is neither a parameter of this file nor a key such as link.NAME.delay; did you mean 'buffer'?",
        ),
        ("link.aa.delay=1", "--set link.aa.delay=1: there is no link 'aa'; did you mean 'a'?"),
        (
            "link.a=1",
            "--set link.a=1: 'link.a' is neither a parameter of this file nor a key such as link.NAME.delay; known are name, about, seed, buffer",
        ),
        ("link.a.dealy=1", "--set link.a.dealy=1: unknown key link.a.dealy; did you mean 'delay'?"),
        (
            "link.a.from.b.delay=1",
            "--set link.a.from.b.delay=1: link.a.from.b: the link joins 'a' and 's'; name one of them",
        ),
        (
            "link.a.loss=2",
            "--set link.a.loss=2: link.a.loss: 200.0 % is above 100 %; write a probability as 0 to 1, or as \
             0 to 100 with %",
        ),
        (
            "buffer=10",
            "--set buffer=10: link.a: buffer of 10 B is smaller than one frame of MTU 1500; make it at least 1518",
        ),
        (
            "host.a.address=10.77.0.2/24",
            "net.toml:2:6: host.b.address: 10.77.0.2 is already the address of host 'a'; use another one",
        ),
        ("link.a.rate.x=1", "--set link.a.rate.x=1: link.a.rate: a table is not a rate such as \"100M\""),
        ("seed=many", "--set seed=many: seed: 'many' is not a whole number from 0"),
    ];
    for (typed, expected) in cases {
        let text = format!("{PAIR}link.a.buffer = \"$buffer\"\nparameters.buffer = \"1MB\"\n");
        assert_eq!(refused(&text, &[typed]), expected);
    }
}

#[test]
fn keys_that_bound_each_other_change_together_in_any_order() {
    let mut direction = LinkDirection::default();
    let red = [("discipline", "red"), ("red_min", "30kB"), ("red_max", "90kB")];
    change_direction(&mut direction, red).unwrap();
    for changes in [[("red_min", "100kB"), ("red_max", "300kB")], [("red_max", "90kB"), ("red_min", "30kB")]]
    {
        change_direction(&mut direction, changes).unwrap();
    }
    let before = direction.clone();
    let error = change_direction(&mut direction, [("delay", "1ms"), ("red_min", "91kB")]).unwrap_err();
    assert!(error.to_string().contains("red_min"), "{error}");
    assert_eq!(direction, before, "all or nothing");
}

#[test]
fn a_running_direction_takes_live_keys_only() {
    let mut direction = LinkDirection { rate: Bitrate::from_bps(1e9), ..LinkDirection::default() };
    change_direction(&mut direction, [("delay", "25ms")]).unwrap();
    change_direction(&mut direction, [("rate", "none")]).unwrap();
    change_direction(&mut direction, [("loss", "1e-4")]).unwrap();
    change_direction(&mut direction, [("loss_every", "5")]).unwrap();
    assert_eq!(
        (direction.delay, direction.rate, direction.loss.clone()),
        (Span::from_ms(25), None, Loss::EveryNth(5))
    );
    change_direction(&mut direction, [("loss", "0")]).unwrap();
    change_direction(&mut direction, [("police_rate", "1M")]).unwrap();
    change_direction(&mut direction, [("police_burst", "5000")]).unwrap();
    change_direction(&mut direction, [("police_rate", "2M")]).unwrap();
    assert_eq!(direction.police.unwrap().burst, Bytes::new(5000), "the depth stays when the rate changes");
    change_direction(&mut direction, [("discipline", "codel")]).unwrap();
    change_direction(&mut direction, [("codel_target", "7ms")]).unwrap();
    change_direction(&mut direction, [("discipline", "codel")]).unwrap();
    assert!(
        matches!(direction.discipline, QueueDiscipline::CoDel(codel) if codel.target == Span::from_ms(7))
    );

    let before = direction.clone();
    let cases = [
        ("dealy", "1", "unknown key 'dealy'; did you mean 'delay'?"),
        (
            "mtu",
            "9000",
            "mtu cannot change while the lab is up; set it in the file or with --set, and start the lab \
             again",
        ),
        (
            "members",
            "2",
            "members cannot change while the lab is up; set it in the file or with --set, and start the lab \
             again",
        ),
        ("delay", "-1s", "delay: '-1s' is negative (example: 10 or 10s, 250ms, 2m, 1h)"),
        ("buffer", "1517", "buffer of 1517 B is smaller than one frame of MTU 1500; make it at least 1518"),
        (
            "red_min",
            "9000",
            "red_min: has no effect without discipline = \"red\"; add discipline = \"red\" or remove this key",
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(change_direction(&mut direction, [(key, value)]).unwrap_err().to_string(), expected);
        assert_eq!(direction, before);
    }
}

#[test]
fn a_change_is_for_a_link_or_one_direction_of_it() {
    let topology = parse(PAIR, &[]);
    let find =
        |text: &str| parse_target(text).and_then(|target| target.find(&topology)).map_err(|e| e.to_string());
    assert_eq!(find("link.b"), Ok((1, &[0, 1][..])));
    assert_eq!(find("link.b.from.b"), Ok((1, &[0][..])));
    assert_eq!(find("link.b.from.s"), Ok((1, &[1][..])));
    let form = "does not have the form link.NAME or link.NAME.from.NODE";
    for text in
        ["", "b", "link", "link.", "link.b.from", "link.b.from.", "link.b.to.s", "host.a", "link.b.from.s.x"]
    {
        assert_eq!(find(text), Err(format!("'{text}' {form}")));
    }
    assert_eq!(find("link.bb"), Err("there is no link 'bb'; did you mean 'b'?".to_owned()));
    assert_eq!(find("link.b.from.a"), Err("link 'b' does not end at 'a'; it joins 'b' and 's'".to_owned()));
}
