//! How does a function run on several cores? The treatment of each of its state objects, and why.
//!
//!     cargo run -p millrace --example plan -- nfs/firewall 16

use millrace::model::Limits;
use millrace::plan::{Plan, Wanted};
use millrace::{Error, Make};

/// The plan of the function that a word names.
///
/// # Errors
/// It cannot be found, read or compiled, it is refused, or it cannot run on this many cores.
pub fn plan(word: &str, cores: u32) -> Result<Plan, Error> {
    let make = Make::default();
    let written = millrace::find(word)?.read(&make)?;
    let proved = written.check(make.begin())?;
    let mut model = proved.model(&Limits::default());
    let wanted = Wanted {
        cores,
        ..Wanted::default()
    };
    Ok(proved.plan(&mut model, &wanted)?)
}

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let word = words.next().unwrap_or_else(|| "nfs/firewall".into());
    let cores = words.next().and_then(|n| n.parse().ok()).unwrap_or(16);
    println!("{}", millrace::plan::text::text(&plan(&word, cores)?));
    Ok(())
}
