//! Runs a test of an hour in one thread, follows its events in another, and cancels it after a few of them.

use std::sync::mpsc::channel;

use linerate_model::{Body, Event, TestSpec};
use linerate_runner::{CancelToken, Loopback, RunnerError, run};
use linerate_units::Span;

fn main() -> Result<(), RunnerError> {
    let server = Loopback::start()?;
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_secs(3600));

    let cancel = CancelToken::new();
    let (sender, receiver) = channel::<Event>();
    let record = std::thread::scope(|scope| {
        let watcher = cancel.clone();
        scope.spawn(move || {
            let mut seen = 0;
            for event in receiver {
                if let Body::Progress { bytes, elapsed, .. } = &event.body {
                    println!("{elapsed}: {bytes}");
                    seen += 1;
                }
                if seen == 5 {
                    watcher.cancel();
                }
            }
        });
        // The channel closes when `run` has returned, and the watcher ends.
        run(server.address(), &spec, &cancel, &mut move |event| {
            let _ = sender.send(event.clone());
        })
    })?;

    println!("ended as {:?}", record.outcome);
    Ok(())
}

#[test]
fn it_ends_when_it_is_cancelled() -> Result<(), RunnerError> {
    main()
}
