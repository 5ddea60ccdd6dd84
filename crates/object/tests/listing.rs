//! Listings of two programs, as a person sees them.

use crate::common;

use millrace_object::load_file;

#[test]
fn of_an_xdp_program() {
    let program = load_file(&common::program("counter.elf")).unwrap();
    insta::assert_snapshot!(program.to_string());
}

#[test]
fn of_a_handler_program() {
    let program = load_file(&common::program("gate.elf")).unwrap();
    insta::assert_snapshot!(program.to_string());
}

/// The recorded objects are those of the sources beside them.
#[test]
fn recorded_objects_are_up_to_date() {
    for name in ["counter", "gate"] {
        let program = load_file(&common::program(&format!("{name}.elf"))).unwrap();
        let source = std::fs::read_to_string(common::program(&format!("{name}.c"))).unwrap();
        let source: Vec<&str> = source.lines().map(str::trim).collect();
        let mut lines = 0;
        for line in program
            .functions
            .iter()
            .flat_map(|f| f.lines.iter().flatten())
        {
            assert_eq!(
                source[line.line as usize - 1],
                &*line.text,
                "{name}.c:{}",
                line.line
            );
            lines += 1;
        }
        assert!(lines > 20, "{name}: {lines}");
    }
}
