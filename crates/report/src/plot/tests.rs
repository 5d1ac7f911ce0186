//! Plots are reproducible, and empty without data.

use expect_test::expect;
use linerate_model::RunRecord;

use super::*;
use crate::TextLayout;
use crate::samples_of_runs as runs;

fn view(width: usize) -> TextLayout {
    TextLayout { width, ..TextLayout::default() }
}

#[test]
fn both_curves_stand_between_their_axes() {
    let page = terminal(&RunRecord::fold(&runs::sweep_run()), &view(60));
    expect![[r#"

        bitrate of payload (bit/s) over message size
        10 Gb/s │                                               ⢀⣀⡠⠤
                │                                        ⢀⣀⠤⠔⠒⠊⠉⠁
                │                                   ⣀⡠⠔⠒⠉⠁
        1 Gb/s  │                              ⢀⡠⠔⠊⠉
                │                          ⢀⡠⠔⠊⠁
        100 Mb/s│                      ⣀⠤⠒⠉⠁
                │                  ⣀⠤⠒⠉
                │              ⣀⠤⠒⠉
        10 Mb/s │          ⢀⡠⠔⠉
                │      ⣀⡠⠔⠊⠁
        1 Mb/s  │  ⣀⠤⠒⠉
                │⠒⠉
        100 kb/s│
                └───────────────────────────────────────────────────
              1 B             16 B      256 B     4 KiB       64 KiB

        half the round trip of one message (s) over message size
        100 us│                                                    ⢀
              │                                                   ⡠⠃
              │                                                  ⡔⠁
              │                                                ⢠⠊
              │                                               ⡰⠁
              │                                             ⢀⠜
              │                                          ⢀⡠⠊⠁
              │                                        ⡠⠔⠁
              │                       ⢀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡠⠤⠔⠒⠊⠉
              │⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠁
              │
              │
        10 us │
              └─────────────────────────────────────────────────────
            1 B             16 B      256 B     4 KiB         64 KiB
    "#]]
    .assert_eq(&page);
    // A page that is narrower than any curve.
    let narrow = terminal(&RunRecord::fold(&runs::sweep_run()), &view(1));
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

#[test]
fn nothing_is_drawn_of_a_plain_test_or_of_one_size() {
    let plain = RunRecord::fold(&runs::tcp_run());
    assert_eq!(terminal(&plain, &view(80)), "");
    let mut record = RunRecord::fold(&runs::sweep_run());
    record.flows[0].sizes.truncate(1);
    assert_eq!(terminal(&record, &view(80)), "");
}

#[test]
fn the_lower_axis_ends_where_its_ticks_do() {
    assert_eq!(size_axis_of((0, 23), 100), (0, 24, 3));
    assert_eq!(size_axis_of((0, 1), 40), (0, 1, 1));
    assert_eq!(size_axis_of((3, 26), 40), (3, 27, 8));
}

fn size_axis_of(sizes: (i32, i32), columns: usize) -> (i32, i32, i32) {
    terminal::size_axis(sizes, columns)
}

#[test]
fn the_heading_keeps_to_a_narrow_page() {
    let page = terminal(&RunRecord::fold(&runs::sweep_run()), &view(40));
    let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 40).collect();
    assert_eq!(wide, [""; 0]);
    assert!(page.contains("bitrate of payload (bit/s) over message\nsize\n"), "{page}");
}
