//! Measures the loopback interface for half a second each way and prints the verdict of each direction.

use linerate_model::TestSpec;
use linerate_runner::{CancelToken, Loopback, RunnerError, run};
use linerate_units::Span;

fn main() -> Result<(), RunnerError> {
    // Usually the server is `linerate serve` on another host, and this would be its name.
    let server = Loopback::start()?;

    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_ms(500));
    spec.traffic.streams = 2;

    let mut events = 0;
    let record = run(server.address(), &spec, &CancelToken::new(), &mut |_event| events += 1)?;

    for flow in &record.flows {
        match flow.bitrate() {
            Some(rate) => println!("{}: {rate}", flow.plan.name),
            None => println!("{}: nothing was measured", flow.plan.name),
        }
        if let Some(verdict) = &flow.verdict {
            println!("  {}", verdict.text);
        }
    }
    println!("{events} events");
    Ok(())
}

#[test]
fn it_measures() -> Result<(), RunnerError> {
    main()
}
