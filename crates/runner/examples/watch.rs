//! Runs a plan of hours in one thread, follows its events in another, and cancels it after a few of them.

use std::error::Error;
use std::sync::mpsc::{Sender, channel};

use linerate_control::{Sink, SinkError, Token};
use linerate_model::{Body, Event, PlanRecord, World};
use linerate_plan::{Source, read};
use linerate_runner::plan::{PlanFiles, PlanWorld, PreparedPlan};
use linerate_runner::{CancelToken, Loopback};

/// Passes the events of the plan and of its runs to another thread.
struct Forward(Sender<Event>);

impl Sink for Forward {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        // The other thread has ended if it has seen enough.
        let _ = self.0.send(event.clone());
        Ok(())
    }
}

fn watch() -> Result<PlanRecord, Box<dyn Error>> {
    // Usually these are `linerate serve --agent-token-file` on two other hosts.
    let token = Token::new("known to the agents and to this program")?;
    let (near, far) = (Loopback::agent(token.clone())?, Loopback::agent(token.clone())?);
    let text = format!(
        r#"
        host.near = {{ address = "127.0.0.1", port = {} }}
        host.far = {{ address = "127.0.0.1", port = {} }}
        flow.bulk = {{ from = "near", to = "far" }}
        test.duration = "3600s"
        axis.streams = [1, 4]
        "#,
        near.port(),
        far.port()
    );
    let source = Source { name: "watched.toml".to_owned(), text };
    let plan = PreparedPlan::new(read(source, &[], &PlanFiles)?, World::Hosts)?;

    let cancel = CancelToken::new();
    let (sender, events) = channel::<Event>();
    let record = std::thread::scope(|scope| {
        let watcher = cancel.clone();
        scope.spawn(move || {
            let progress = |event: Event| match event.body {
                Body::Progress { bytes, elapsed, .. } => Some((elapsed, bytes)),
                _ => None,
            };
            for (elapsed, bytes) in events.iter().filter_map(progress).take(5) {
                println!("{elapsed}: {bytes}");
            }
            watcher.cancel();
        });
        plan.run(PlanWorld::Hosts { token, tls: None }, &cancel, vec![&mut Forward(sender)], &mut ())
    })?;
    Ok(record)
}

fn main() -> Result<(), Box<dyn Error>> {
    let record = watch()?;
    println!("ended as {:?} in trial {}", record.outcome, record.trials.len());
    Ok(())
}

#[test]
fn it_ends_when_it_is_cancelled() {
    assert_eq!(watch().unwrap().outcome, Some(linerate_model::Outcome::Interrupted));
}
