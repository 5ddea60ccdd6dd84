//! Runs a function from one capture to another on two workers, as its plan says, and reads the account.
//!
//!     cargo run -p millrace --example run -- nfs/firewall captures/talk.pcap out.pcap

use std::sync::atomic::AtomicBool;

use millrace::{Account, Asked, Error, Make, Ports};

/// Raised, it ends a run, which drains and gives its account. A program would raise it on a signal.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// Runs the function that a word names; packets from the capture's LAN enter at its port LAN, all others at WAN.
///
/// # Errors
/// The function cannot be made or does not run on two workers, or a capture cannot be opened.
pub fn run(word: &str, input: &str, output: &str) -> Result<Account, Error> {
    let make = Make::default();
    let found = millrace::find(word)?;
    let written = found.read(&make)?;
    let proved = written.check(make.begin())?;
    let asked = Asked::default();
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked)?.several(asked.cores)?;
    let function = found.load(&arranged.divided(&make), &mut |_| {})?;
    let ports = Ports {
        inputs: vec![input.into()],
        outputs: vec![output.into()],
        split: Some("lan=10.0.0.0/24,fd00::/8".parse().map_err(Error::wrong)?),
        ..Ports::default()
    };
    millrace::run(&function, &ports, &STOP)
}

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let mut word = |usual: &str| words.next().unwrap_or_else(|| usual.into());
    let (nf, input) = (word("nfs/firewall"), word("captures/talk.pcap"));
    let account = run(&nf, &input, &word("out.pcap"))?;
    println!(
        "{} packets read: {} forwarded, {} dropped",
        account.read, account.forwarded, account.dropped
    );
    for (reason, packets) in &account.reasons {
        println!("{packets} dropped because of {reason}");
    }
    for worker in &account.workers {
        println!("worker {}: {} packets", worker.worker, worker.packets);
    }
    Ok(())
}
