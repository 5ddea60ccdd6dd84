//! Is a function safe? The verdict, and for each refusal the author's line and how to fix it.
//!
//!     cargo run -p millrace --example check -- nfs/firewall

use std::fmt::Write;

use millrace::{Error, Make};

/// The verdict on the function that a word names.
///
/// # Errors
/// It cannot be found, read or compiled.
pub fn verdict(word: &str) -> Result<String, Error> {
    let make = Make::default();
    let written = millrace::find(word)?.read(&make)?;
    let mut text = format!("{}: ", written.program.name);
    let Err(error) = written.check(make.begin()) else {
        return Ok(text + "safe");
    };
    text += "refused";
    for refusal in error.refused.iter().flat_map(|r| &r.refusals) {
        let line = refusal.line.as_ref().map_or(0, |l| l.line);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nline {line}: {}; {}",
            refusal.reason, refusal.remedy
        );
    }
    Ok(text)
}

fn main() -> Result<(), Error> {
    let word = std::env::args().nth(1);
    println!("{}", verdict(word.as_deref().unwrap_or("nfs/firewall"))?);
    Ok(())
}
