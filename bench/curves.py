"""The page of curves that bench/shard.sh makes: what was measured, and what the cost model says beyond it.

Usage: curves.py LINES FOLDER PROCESSORS TURNS PACKETS [PAGE]. LINES has a JSON document a line, as shard.sh writes
them. PAGE is a page of the book: what stands behind its marker is written anew, and the plots beside it.
"""
import collections
import html
import json
import math
import os
import platform
import sys

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf"]
WIDTH, HEIGHT, LEFT, BOTTOM = 420, 260, 56, 40
# Behind this line of the page stands what is measured.
MARKER = "<!-- bench/shard.sh --record writes what follows -->"


def points(lines):
    """Each figure: curve, function, traffic, strategy, x, cores, Mpps, and whether it was measured or simulated."""
    found, refused, latency = [], [], []
    for line in lines:
        about = {k: line[k] for k in ("curve", "nf", "traffic", "x")}
        document = line["document"]
        if line["why"] or document is None:
            refused.append({**about, "verb": line["verb"], "why": line["why"] or "no document"})
            continue
        if line["verb"] == "plan":
            works = {w["strategy"]: w for w in (document["measured"] or {}).get("strategies", [])}
            for p in document["predicted"]:
                writes = works.get(p["strategy"], {}).get("writes")
                found.append({**about, "strategy": p["strategy"], "cores": p["cores"], "mpps": p["mpps"],
                              "writes": writes, "kind": "simulated" if p["simulated"] else "predicted"})
            for no in (document["measured"] or {}).get("unmeasured", []):
                refused.append({**about, "verb": "plan", "why": f"{no['strategy']}: {no['why']}"})
            continue
        for skipped in document["skipped"]:
            refused.append({**about, "verb": "bench", "why": f"{skipped['cores']} cores: {skipped['why']}"})
        for run in document["runs"]:
            if about["curve"] == "latency":
                latency.append({**about, **{k: run[k] for k in ("strategy", "cores", "mpps", "p50_ns", "p99_ns")}})
                continue
            found.append({**about, "strategy": run["strategy"], "cores": run["cores"], "mpps": run["mpps"],
                          "low": run["spread"]["low"], "high": run["spread"]["high"], "writes": run["writes"],
                          "imbalance": run["imbalance"], "kind": "measured"})
    continued(found)
    return found, refused, latency


def continued(found):
    """Continues what was measured: a simulated rate is that of the most cores measured, by as much more as the cost
    model says of these two numbers of cores. The model's own rates are of another port (the software NIC's driver)."""
    about = lambda p: (p["curve"], p["nf"], p["traffic"], p["x"], p["strategy"])
    measured = {(*about(p), p["cores"]): p["mpps"] for p in found if p["kind"] == "measured"}
    predicted = {(*about(p), p["cores"]): p["mpps"] for p in found if p["kind"] != "measured"}
    for p in (p for p in found if p["kind"] == "simulated"):
        both = [c for *what, c in measured if tuple(what) == about(p) and predicted.get((*what, c))]
        p["predicted_mpps"] = p["mpps"]
        if both:
            at = (*about(p), max(both))
            p["mpps"] = measured[at] * p["mpps"] / predicted[at]


def flows_a_minute(figure):
    """New flows a minute at the figure's own rate; none where nobody counted who writes."""
    if not figure.get("writes"):
        return ""
    return f"{figure['writes'] * figure['mpps'] * 60e6:.3g}"


def plot(title, series, x_label, log_x):
    """An SVG of lines {name: [(x, y, solid)]}; what is not solid is simulated and dashed."""
    everything = [p for line in series.values() for p in line]
    if not everything:
        return ""
    place = (lambda x: math.log10(x)) if log_x else (lambda x: x)
    xs = sorted({x for x, _, _ in everything})
    low, high = place(xs[0]), place(xs[-1])
    top = max(y for _, y, _ in everything) * 1.05 or 1
    px = lambda x: LEFT + (place(x) - low) / ((high - low) or 1) * (WIDTH - LEFT - 10)
    py = lambda y: HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - 24)
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 16 * len(series)}" width="{WIDTH}">',
           f'<text x="{LEFT}" y="14" font-weight="bold">{html.escape(title)}</text>',
           f'<path d="M{LEFT} 20V{HEIGHT - BOTTOM}H{WIDTH - 10}" stroke="#444" fill="none"/>',
           f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(x_label)}</text>']
    for x in xs:
        out.append(f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{x:g}</text>')
    for share in (0.25, 0.5, 0.75, 1):
        y = top * share
        out.append(f'<text x="{LEFT - 4}" y="{py(y) + 4:.1f}" text-anchor="end">{y:.1f}</text>'
                   f'<path d="M{LEFT} {py(y):.1f}H{WIDTH - 10}" stroke="#ddd"/>')
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        line = sorted(line)
        for (x0, y0, _), (x1, y1, solid) in zip(line, line[1:]):
            dash = "" if solid else ' stroke-dasharray="5 4"'
            out.append(f'<path d="M{px(x0):.1f} {py(y0):.1f}L{px(x1):.1f} {py(y1):.1f}" stroke="{colour}" fill="none"{dash}/>')
        for x, y, solid in line:
            fill = colour if solid else "white"
            out.append(f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" stroke="{colour}" fill="{fill}"/>')
        out.append(f'<text x="{LEFT}" y="{HEIGHT + 12 + 16 * number}" fill="{colour}">{html.escape(name)}</text>')
    return "".join(out) + "</svg>"


def over_cores(found):
    """For each function and traffic, Mpps over cores: measured where it was, simulated behind that. All strategies
    begin with what one core does alone."""
    groups = collections.defaultdict(lambda: collections.defaultdict(dict))
    alone = {}
    for p in (p for p in found if p["curve"] == "cores"):
        group = p["nf"], p["traffic"]
        if p["kind"] == "measured" and p["cores"] == 1:
            alone[group] = p
        elif p["kind"] == "measured":
            groups[group][p["strategy"]][p["cores"]] = p
        elif p["kind"] == "simulated":
            groups[group][p["strategy"]].setdefault(p["cores"], p)
    for group, lines in groups.items():
        for at in lines.values():
            if group in alone:
                at[1] = alone[group]
        series = {s: [(c, p["mpps"], p["kind"] == "measured") for c, p in at.items()] for s, at in lines.items()}
        yield plot(", ".join(group), series, "cores", False)


def over_x(found, curve, label, cores):
    """Mpps over x for each strategy and number of cores; an x of 0 stands at the left end."""
    lines = collections.defaultdict(list)
    smallest = min((p["x"] for p in found if p["curve"] == curve and p["x"] > 0), default=1)
    for p in found:
        if p["curve"] == curve and p["cores"] in cores and p["kind"] != "predicted":
            x = p["x"] or smallest / 10
            lines[f"{p['strategy']} on {p['cores']}, {p['kind']}"].append((x, p["mpps"], p["kind"] == "measured"))
    return plot(f"firewall, {label}", lines, label, True)


def mpps(p):
    """A rate as a table shows it; what is continued with the cost model is marked."""
    return "" if p is None else f"{p['mpps']:.2f}" if p["kind"] == "measured" else f"~{p['mpps']:.2f}"


def row(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |\n"


def best_of(points, key):
    """Of the figures with a key those that were measured, and else those that are simulated."""
    at = {}
    for p in sorted(points, key=lambda p: p["kind"] == "measured"):
        if p["kind"] in ("measured", "simulated"):
            at[key(p)] = p
    return at


def cores_table(found):
    points = [p for p in found if p["curve"] == "cores"]
    at = best_of(points, lambda p: (p["nf"], p["traffic"], p["strategy"], p["cores"]))
    cores = sorted({p["cores"] for p in points if p["kind"] in ("measured", "simulated")})
    groups = list(dict.fromkeys((p["nf"], p["traffic"], p["strategy"]) for p in points
                                if p["strategy"] not in ("alone", "sequential")))
    one = {(p["nf"], p["traffic"]): p for p in points if p["cores"] == 1 and p["kind"] == "measured"}
    out = row(["function", "traffic", "strategy", *(f"{c} cores" if c > 1 else "1 core" for c in cores), "measured / linear"])
    out += row(["---"] * (len(cores) + 4))
    for nf, traffic, strategy in groups:
        cells = [one.get((nf, traffic)) if c == 1 else at.get((nf, traffic, strategy, c)) for c in cores]
        last = next((p for p in reversed(cells) if p and p["kind"] == "measured"), None)
        alone = cells[0] if cells and cores[0] == 1 else None
        more = last and alone and last["cores"] > 1 and alone["mpps"]
        share = f"{last['mpps'] / (alone['mpps'] * last['cores']):.2f}" if more else ""
        out += row([nf, traffic, strategy, *map(mpps, cells), share])
    return out


def skew_table(found):
    """What skew costs: Zipf over uniform, of what is not the lock."""
    points = [p for p in found if p["curve"] == "cores" and p["strategy"] not in ("alone", "sequential")]
    at = best_of(points, lambda p: (p["nf"], p["strategy"], p["cores"], p["traffic"]))
    out = row(["function", "strategy", "cores", "uniform", "Zipf 1.1", "Zipf / uniform"]) + row(["---"] * 6)
    for (nf, strategy, cores, traffic), p in sorted(at.items(), key=lambda i: (i[0][0], i[0][1], i[0][2])):
        other = at.get((nf, strategy, cores, "zipf"))
        if traffic == "uniform" and other and p["mpps"] and cores > 1:
            out += row([nf, strategy, cores, mpps(p), mpps(other), f"{other['mpps'] / p['mpps']:.2f}"])
    return out


def x_table(found, curve, label):
    """Rates over x: strategies on as many cores as there are, and on the most that are simulated."""
    points = [p for p in found if p["curve"] == curve]
    at = best_of(points, lambda p: (p["x"], p["strategy"], p["cores"]))
    lines = sorted({(s, c) for _, s, c in at})
    lines = [k for k in lines if k[1] == 1 or k[0] not in ("alone", "sequential")]
    out = row([label, *(f"{s}, {c}" for s, c in lines), "new flows a minute"]) + row(["---"] * (len(lines) + 2))
    for x in sorted({p["x"] for p in points}):
        here = [at.get((x, s, c)) for s, c in lines]
        counted = next((p for p in reversed(here) if p and p.get("writes")), None)
        out += row([f"{x:g}", *map(mpps, here), flows_a_minute(counted) if counted else ""])
    return out


def record(file, found, refused, latency, conditions):
    """Writes the figures into a page of the book, and the plots beside it."""
    with open(file) as page:
        text, marker, _ = page.read().partition(MARKER)
    if not marker:
        sys.exit(f"{file}: there is no line `{MARKER}`, behind which the figures stand")
    many = {1, conditions["processors"], 16}
    plots = [p for p in over_cores(found)]
    plots += [over_x(found, "writes", "per cent of packets that write", many),
              over_x(found, "churn", "flows replaced a minute of 60 Mpps, 64K live", many)]
    plots = [p for p in plots if p]
    drawn = "".join(p.replace("<svg ", f'<svg x="{n % 2 * (WIDTH + 20)}" y="{n // 2 * (HEIGHT + 100)}" '
                              f'height="{HEIGHT + 96}" ', 1) for n, p in enumerate(plots))
    height = (len(plots) + 1) // 2 * (HEIGHT + 100)
    picture = os.path.splitext(file)[0] + ".svg"
    with open(picture, "w") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH + 20}" height="{height}" '
                  f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>{drawn}</svg>\n')
    waits = row(["function", "strategy", "cores", "Mpps", "median, ns", "99 %, ns"]) + row(["---"] * 6)
    for p in latency:
        waits += row([p["nf"], p["strategy"], p["cores"], f"{p['mpps']:.2f}", f"{p['p50_ns']:.0f}", f"{p['p99_ns']:.0f}"])
    # A reason that is the same everywhere stands there once.
    reasons = collections.defaultdict(dict)
    for p in refused:
        reasons[p["verb"], p["why"]][p["nf"]] = None
    noes = "".join(f"- {', '.join(nfs)} ({verb}): {why}\n" for (verb, why), nfs in reasons.items()) or "Nothing.\n"
    facts = ", ".join(f"{k} {v}" for k, v in conditions.items())
    with open(file, "w") as out:
        out.write(f"""{text}{marker}

Conditions: {facts}.

Million packets a second. Figures with ~ are simulated: what was measured on the most cores that there are, times what
the cost model says that more of them bring.
*measured / linear* is the rate on the most cores that were measured over as many times that of one. The plots show
the same: full lines are measured, dashed ones simulated.

![Rates over cores, share of writes and churn]({os.path.basename(picture)})

### Over cores

{cores_table(found)}
### Skew

With a table that is balanced to the trace.

{skew_table(found)}
### Packets that write

Firewall; per cent of packets that open a flow.

{x_table(found, "writes", "% writes")}
### Churn

Firewall, 64K live flows; flows replaced a minute at 60 Mpps, and how many were opened a minute at the rate of the last
column that has one.

{x_table(found, "churn", "flows a minute")}
### Latency

On the software NIC, at 90 % of the highest rate without loss.

{waits}
### Not measured

{noes}""")


def main():
    path, folder, processors, turns, packets, *book = sys.argv[1:]
    found, refused, latency = points([json.loads(line) for line in open(path)])
    conditions = {"system": platform.platform(), "processors": int(processors), "load": round(os.getloadavg()[0], 2),
                  "turns": int(turns), "packets": int(packets), "frame": 64, "port": "memory; latency: vnic"}
    with open(os.path.join(folder, "shard.json"), "w") as out:
        json.dump({"points": found, "latency": latency, "refused": refused, "conditions": conditions}, out, indent=1)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in (
        p["nf"], p["traffic"], p["x"], p["strategy"], p["cores"], f"{p['mpps']:.2f}", p["kind"],
        "" if p.get("writes") is None else f"{p['writes'] * 100:.4f} %", flows_a_minute(p))) + "</tr>" for p in found)
    waits = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in (
        p["nf"], p["strategy"], p["cores"], f"{p['mpps']:.2f}", p["p50_ns"], p["p99_ns"])) + "</tr>" for p in latency)
    noes = "".join(f"<li>{html.escape(p['nf'])}, {html.escape(p['traffic'])}, {p['verb']}: {html.escape(p['why'])}</li>"
                   for p in refused)
    facts = html.escape(", ".join(f"{k} {v}" for k, v in conditions.items()))
    many = {1, int(processors), 16}
    page = f"""<!doctype html><meta charset="utf-8"><title>Curves over cores</title>
<style>body{{font:14px sans-serif;margin:2em}}svg{{font-size:11px;margin:8px}}td,th{{padding:1px 8px;text-align:right}}</style>
<h1>Curves over cores</h1><p>{facts}</p>
<p>Full dots and lines were measured; hollow dots and dashed lines are simulated: what was measured on the most cores
that there are, times what the cost model (docs/scaling.md) says that more of them bring.</p>
{"".join(over_cores(found))}
<h2>Packets that write</h2>{over_x(found, "writes", "per cent of packets that write", many)}
<h2>Churn</h2>{over_x(found, "churn", "flows replaced a minute of 60 Mpps, 64K live", many)}
<h2>Latency at 90 % of the highest rate without loss, software NIC</h2>
<table><tr><th>function<th>strategy<th>cores<th>Mpps<th>median, ns<th>99 %, ns</tr>{waits}</table>
<h2>All figures</h2><table><tr><th>function<th>traffic<th>x<th>strategy<th>cores<th>Mpps<th>kind<th>writes<th>writes a minute</tr>{rows}</table>
<h2>Not measured</h2><ul>{noes}</ul>"""
    with open(os.path.join(folder, "shard.html"), "w") as out:
        out.write(page)
    for file in book:
        record(file, found, refused, latency, conditions)
    print(f"{len(found)} figures, {len(refused)} refusals: {folder}/shard.html, shard.json")


main()
