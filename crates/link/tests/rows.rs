//! Rows and trees of small programs.

use millrace_check::{Options, check};
use millrace_link::{Element, Reason, link};
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Dialect, Entry, Function, FunctionId, Program, Role};
use millrace_topology::Topology;

fn set(dst: u8, n: i64) -> Insn {
    Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg(dst),
        src: Operand::Imm(n),
    }
}

/// A function of these instructions, which drops for the reason `why` and has two ports.
fn program(insns: Vec<Insn>) -> Program {
    Program {
        name: "f".into(),
        dialect: Dialect::Handlers,
        functions: vec![Function {
            name: "on_packet".into(),
            section: "millrace/on_packet".into(),
            slots: (0..insns.len() as u32).collect(),
            lines: vec![None; insns.len()],
            insns,
        }],
        entries: vec![Entry {
            role: Role::OnPacket,
            function: FunctionId(0),
        }],
        objects: Vec::new(),
        ports: vec!["LAN".into(), "WAN".into()],
        params: Vec::new(),
        reasons: vec!["dropped".into(), "why".into()],
        license: String::new(),
    }
}

/// Sends what comes in at port 0 to this port, and drops all else for a reason.
fn one_way(to: i64) -> Program {
    program(vec![
        Insn::Load {
            size: Size::B4,
            signed: false,
            dst: Reg(1),
            base: Reg(1),
            offset: 12,
        },
        set(0, (1 << 24) + to),
        Insn::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: Reg(1),
            right: Operand::Imm(0),
            target: 4,
        },
        set(0, 1),
        Insn::Exit,
    ])
}

pub fn linked(programs: &[Program]) -> Result<Program, millrace_link::Unlinkable> {
    let names: Vec<String> = (0..programs.len()).map(|n| format!("e{n}")).collect();
    let checked: Vec<_> = programs
        .iter()
        .map(|p| check(p, &Options::default()).unwrap())
        .collect();
    let elements: Vec<_> = { programs.iter().zip(&checked).zip(&names) }
        .map(|((program, checked), name)| Element {
            name,
            program,
            checked,
        })
        .collect();
    link(&elements, &Topology::line(programs.len()), &[])
}

#[test]
fn a_row_has_the_reasons_of_its_elements_and_is_safe() {
    let row = linked(&[one_way(1), one_way(1)]).unwrap();
    assert_eq!(row.name, "e0+e1");
    assert_eq!(
        row.reasons,
        ["dropped", "e0:dropped", "e0:why", "e1:dropped", "e1:why"]
    );
    assert_eq!(row.ports, ["0", "1"]);
    let checked = check(&row, &Options::default()).unwrap();
    // The port is known in each copy: no load of it is left, but the handler's own.
    let loads = row.functions.iter().flat_map(|f| &f.insns);
    let loads = loads.filter(|i| matches!(i, Insn::Load { offset: 12, .. }));
    assert_eq!(loads.count(), 1);
    assert_eq!(checked.flows.len(), 1);
}

#[test]
fn an_element_that_sends_back_is_linked_where_that_ends() {
    // The second sends everything back, and the first drops it.
    assert!(linked(&[one_way(1), one_way(0)]).is_ok());
    // Both send back what comes from each other.
    let back = |port: i64| program(vec![set(0, (1 << 24) + port), Insn::Exit]);
    let refused = linked(&[back(1), back(0)]).unwrap_err();
    assert_eq!(refused.reason, Reason::Back("e1".into()));
    assert!(
        refused.to_string().starts_with("e0 cannot be linked: "),
        "{refused}"
    );
}

#[test]
fn licenses_that_do_not_go_together_are_refused() {
    let of = |license: &str| Program {
        license: license.into(),
        ..one_way(1)
    };
    for (one, other) in [("", "GPL"), ("Proprietary", "Dual MIT/GPL"), ("MIT", "GPL")] {
        let refused = linked(&[of(one), of(other)]).unwrap_err();
        assert_eq!(
            refused.reason,
            Reason::License("e0".into()),
            "{one}, {other}"
        );
    }
    for (all, joint) in [
        (["Dual MIT/GPL", "GPL", "Dual BSD/GPL"], "GPL"),
        (["Dual MIT/GPL", "GPL v2", "GPL"], "GPL v2"),
        (["Dual MIT/GPL"; 3], "Dual MIT/GPL"),
        (["Proprietary"; 3], "Proprietary"),
    ] {
        assert_eq!(linked(&all.map(of)).unwrap().license, joint);
    }
}
