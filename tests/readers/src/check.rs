//! The checker: it must answer, and what it admits must never step outside.

use millrace_assemble::generate;
use millrace_check::{Options, check};
use millrace_reference::{End, Machine};

/// Checks `data` as an object file, and the program that `data` decides. If that is admitted, it is
/// executed on packets of the same bytes.
pub fn run(data: &[u8]) {
    let options = Options {
        max_visits: 20_000,
        ..Options::default()
    };
    if let Ok(program) = millrace_object::load(data, "fuzz") {
        drop(check(&program, &options));
    }
    let program = generate::program(data);
    let Ok(checked) = check(&program, &options) else {
        return;
    };
    for length in [0, 14, 33, 34, 64] {
        let packet: Vec<u8> = data.iter().copied().cycle().take(length).collect();
        for entry in &program.entries {
            let mut machine = Machine::new(&program, &packet, length as u64);
            machine.begin_as_proved(&checked);
            let end = machine.run(entry.function, entry.role, 1_000_000);
            assert!(matches!(end, Ok(End::Verdict(_))), "{end:?}\n{program}");
        }
    }
}
