//! Fields and places that lie side by side, as one.

use std::collections::BTreeMap;

use millrace_check::facts::FrameId;

use crate::expr::Expr;

use super::{Draft, Set, Vertex};

/// Fields of bytes that lie side by side in the stack become one, of up to 8 bytes; and where each vertex is then.
pub(super) fn side_by_side(
    mut drafts: Vec<(Vertex, Draft)>,
) -> (Vec<Draft>, BTreeMap<Vertex, Expr>) {
    let byte = |d: &Draft| match d.from {
        Expr::Stack(frame, at) if d.mask == 0xff => Some((frame, at)),
        _ => None,
    };
    drafts.sort_by_key(|(_, d)| byte(d).map_or((1, FrameId(0), 0), |(f, at)| (0, f, at)));
    let (mut fields, mut number) = (Vec::<Draft>::new(), BTreeMap::new());
    let mut last: Option<(FrameId, i32, u8)> = None;
    for (vertex, draft) in drafts {
        let here = byte(&draft);
        if let (Some((frame, at)), Some((f, before, count))) = (here, last)
            && (frame, at) == (f, before + 1)
            && count < 8
            && (count != 4 || draft.line_of(&fields))
            && let Some(field) = fields.last_mut()
        {
            field.mask |= 0xff << (8 * u32::from(count));
            let more = Expr::Stack(frame, at);
            match &mut field.from {
                Expr::Bytes(all) => all.push(more),
                one => *one = Expr::Bytes(vec![one.clone(), more]),
            }
            let whole = Expr::Field(fields.len() - 1);
            number.insert(vertex, Expr::Byte(Box::new(whole), count));
            last = Some((frame, at, count + 1));
            continue;
        }
        let whole = Expr::Field(fields.len());
        let of = match here {
            Some(_) => Expr::Byte(Box::new(whole), 0),
            None => whole,
        };
        number.insert(vertex, of);
        last = here.map(|(frame, at)| (frame, at, 1));
        fields.push(draft);
    }
    for field in &mut fields {
        if matches!(field.from, Expr::Bytes(_)) {
            field.name = field.name.replace("byte 0 of ", "");
        }
    }
    (fields, number)
}

/// Bytes side by side that are those of one number are set together.
pub(super) fn joined(sets: &[(Set, Expr)]) -> Vec<(Set, Expr)> {
    let byte = |at: usize| match sets.get(at) {
        Some((Set::Stack(frame, from, 1), e)) => Some((*frame, *from, e)),
        _ => None,
    };
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some((set, expr)) = sets.get(at) {
        let run = byte(at).and_then(|(frame, from, first)| {
            [8usize, 4, 2].into_iter().find_map(|n| {
                let all: Vec<&Expr> = (0..n)
                    .map_while(|i| byte(at + i).filter(|b| (b.0, b.1) == (frame, from + i as i32)))
                    .map(|b| b.2)
                    .collect();
                if all.len() < n {
                    return None;
                }
                let whole = match first {
                    Expr::Byte(of, 0) => {
                        let same = (0u8..)
                            .zip(&all)
                            .all(|(i, e)| matches!(e, Expr::Byte(o, j) if *j == i && o == of));
                        same.then(|| (**of).clone())
                    }
                    Expr::Number(_) => {
                        let numbers = (0u32..).zip(&all).map(|(i, e)| match e {
                            Expr::Number(v) => Some((v & 0xff) << (8 * i)),
                            _ => None,
                        });
                        numbers.sum::<Option<u64>>().map(Expr::Number)
                    }
                    _ => None,
                };
                whole.map(|e| ((Set::Stack(frame, from, n as u32), e), n))
            })
        });
        match run {
            Some((set, n)) => {
                out.push(set);
                at += n;
            }
            None => {
                out.push((*set, expr.clone()));
                at += 1;
            }
        }
    }
    out
}
