//! A picture as a gnuplot script including its data.

use std::fmt::Write;

use crate::picture::Picture;
use crate::picture::{Plot, PlotCurve};

const MAX_FRAMES_PER_ROW: usize = 3;
/// Meaning of the numbers of a marker.
const MARKERS: &str = "0 normal, 1 read from a cache, 2 from few calls, 3 compared with others";
/// The same over dates.
const DATE_MARKERS: &str = "0 normal, 3 inconclusive run";
/// Size of a frame in pixels.
const FRAME: (usize, usize) = (480, 360);

/// The script: data blocks of each frame, then the plot commands. None if the picture has no curves.
#[must_use]
pub fn gnuplot(picture: &Picture) -> Option<String> {
    let plots: Vec<(&str, &Plot)> =
        picture.frames.iter().filter_map(|f| Some((f.title.as_str(), f.plot.as_ref()?))).collect();
    if plots.is_empty() {
        return None;
    }
    let across = plots.len().min(MAX_FRAMES_PER_ROW);
    let down = plots.len().div_ceil(across);
    let title = gnuplot_text(&picture.title);
    let has_dates = plots.iter().any(|(_, plot)| plot.is_dates);
    let markers = if has_dates { DATE_MARKERS } else { MARKERS };
    let dates = if has_dates { " (seconds since 1970, UTC), lower and upper bound of the 95 % interval" } else { "" };
    let mut out = format!(
        "# {title}\n# Drawn by: gnuplot -p THIS_FILE. As a file: gnuplot -e \"set term svg size {},{}; set output 'out.svg'\" THIS_FILE\n\
         # Columns: abscissa, value, {markers}, name of the abscissa{dates}.\n",
        across * FRAME.0,
        down * FRAME.1,
    );
    for (frame, (name, plot)) in plots.iter().enumerate() {
        for (number, curve) in plot.curves.iter().enumerate() {
            let _ = writeln!(
                out,
                "\n# {}, {}, {}",
                gnuplot_text(name),
                gnuplot_text(&curve_name(picture, curve)),
                plot.unit
            );
            let _ = writeln!(out, "${} << EOD", block(frame, number));
            points(&mut out, plot, curve);
            out.push_str("EOD\n");
        }
    }
    let _ = write!(out, "\nset multiplot layout {down},{across} title \"{title}\"\nset grid\nset key bottom right\n");
    // Common scale of all frames, in whole decades.
    let values = plots.iter().flat_map(|(_, plot)| plot.curves.iter().flat_map(|c| &c.points)).map(|p| p.y);
    if let Some((least, most)) = decades(values) {
        let _ = writeln!(out, "set yrange [{least}:{most}]");
    }
    for (frame, (name, plot)) in plots.iter().enumerate() {
        draw(&mut out, picture, frame, name, plot);
    }
    out.push_str("unset multiplot\n");
    Some(out)
}

fn decades(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (least, most) = values.fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    let (first, last) = (least.log10().floor(), most.log10().ceil());
    (most > 0.0).then(|| (10_f64.powf(first), 10_f64.powf(last.max(first + 1.0))))
}

/// The data of a curve. A missing value is `NaN`, so that the line breaks there.
fn points(out: &mut String, plot: &Plot, curve: &PlotCurve) {
    for (place, name) in plot.names.iter().enumerate() {
        let here = curve.points.iter().find(|p| p.x == place as f64);
        let (y, look) = here.map_or((f64::NAN, 0), |p| (p.y, p.marker));
        let _ = writeln!(out, "{place} {y} {look} \"{}\"", gnuplot_text(name));
    }
    if !plot.names.is_empty() {
        return;
    }
    for p in &curve.points {
        let _ = write!(out, "{} {} {} \"{}\"", p.x, p.y, p.marker, p.x);
        if plot.is_dates {
            let [low, high] = p.interval.unwrap_or([p.y; 2]);
            let _ = write!(out, " {low} {high}");
        }
        out.push('\n');
    }
    if curve.points.is_empty() {
        out.push_str(if plot.is_dates { "NaN NaN 0 \"\" NaN NaN\n" } else { "NaN NaN 0 \"\"\n" });
    }
}

fn draw(out: &mut String, picture: &Picture, frame: usize, name: &str, plot: &Plot) {
    let logarithmic = if plot.names.is_empty() && !plot.is_dates { "xy" } else { "y" };
    let _ = write!(
        out,
        "\nset title \"{}\"\nset ylabel \"{}\"\nunset logscale\nset logscale {logarithmic}\n",
        gnuplot_text(name),
        gnuplot_text(&plot.unit)
    );
    if plot.curves.iter().all(|c| c.points.is_empty()) {
        // Without values gnuplot has no range and terminates.
        out.push_str("set multiplot next\n");
        return;
    }
    let tic = |name: &str, at: f64| format!("\"{}\" {at}", gnuplot_text(name));
    if plot.names.is_empty() {
        let tics: Vec<String> = plot.labels.iter().map(|(v, n)| tic(n, *v)).collect();
        let (least, most) = plot.labels.iter().fold((f64::MAX, 0.0_f64), |(a, b), (v, _)| (a.min(*v), b.max(*v)));
        // Margins at both ends; a single value would have no range.
        let [least, most] = match plot.is_dates {
            true => [least - (most - least) / 20.0, most + (most - least) / 20.0],
            false => [least / 1.5, most * 1.5],
        };
        let _ = writeln!(out, "set xrange [{least}:{most}]\nset xtics ({})", tics.join(", "));
    } else {
        let tics: Vec<String> = plot.names.iter().enumerate().map(|(at, n)| tic(n, at as f64)).collect();
        let _ = writeln!(out, "set xrange [-0.5:{}.5]\nset xtics ({})", plot.names.len() - 1, tics.join(", "));
    }
    // Lines and names of the frame before are removed.
    if plot.is_dates {
        out.push_str("unset arrow\nunset label\n");
    }
    for (x, name) in &plot.changes {
        let _ = writeln!(out, "set arrow from {x}, graph 0 to {x}, graph 1 nohead dashtype 2");
        let _ = writeln!(out, "set label \"{}\" at {x}, graph 1.02 center", gnuplot_text(name));
    }
    let style = if plot.is_dates { "1:2:5:6 with yerrorlines" } else { "1:2 with linespoints" };
    let curves: Vec<String> = plot
        .curves
        .iter()
        .enumerate()
        .map(|(number, curve)| {
            let title = gnuplot_text(&curve_name(picture, curve));
            format!("${} using {style} title \"{title}\"", block(frame, number))
        })
        .collect();
    let _ = writeln!(out, "plot {}", curves.join(", \\\n     "));
}

fn block(frame: usize, curve: usize) -> String {
    format!("frame{}curve{}", frame + 1, curve + 1)
}

fn curve_name(picture: &Picture, curve: &PlotCurve) -> String {
    let known = picture.keys.iter().find(|key| key.style == Some(curve.style));
    known.map_or_else(|| format!("curve {}", curve.style + 1), |key| key.text.clone())
}

/// Text without characters that are special to gnuplot: quotes, escapes, markup, line breaks.
fn gnuplot_text(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || "\"\\`{}_^@&~$".contains(c) { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::lines::{self, Abscissa, FrameCurve, FramePoint, MarkerStyle};
    use super::super::scale::LogScale;
    use super::*;
    use crate::table::Table;

    fn picture(axis: &Abscissa, values: &[(f64, f64)]) -> Picture {
        let point = |&(x, y)| FramePoint { x, y, marker: MarkerStyle::Cached, interval: None, tooltip: String::new() };
        let curve = FrameCurve { style: 2, points: values.iter().map(point).collect() };
        let scale = LogScale::around([1.0]).unwrap();
        let frames = vec![lines::frame("read \"`rm -r`\"", String::new(), "MB/s", axis, scale, &[curve])];
        let keys = vec![lines::legend_entry(2, "$(type) 1")];
        Picture { name: "n".into(), title: "a\nb".into(), keys, frames, table: Table::new::<String>("", 0, []) }
    }

    #[test]
    fn numbers_are_in_blocks_and_gaps_stay_gaps() {
        let axis = Abscissa::Names(["1k", "2k"].map(str::to_owned).to_vec());
        let text = gnuplot(&picture(&axis, &[(1.0, 2.5)])).unwrap();
        for part in
            ["# a b", "$frame1curve1 << EOD\n0 NaN 0 \"1k\"\n1 2.5 1 \"2k\"\nEOD\n", "title \"(type) 1\"", "layout 1,1"]
        {
            assert!(text.contains(part), "no {part} in {text}");
        }
        // Backquotes are commands to gnuplot.
        assert!(!text.contains('`'), "{text}");
        let log = Abscissa::log(vec![(4.0, "4".into())]).unwrap();
        let text = gnuplot(&picture(&log, &[(4.0, 2.5)])).unwrap();
        assert!(text.contains("set logscale xy") && text.contains("4 2.5 1"), "{text}");
        assert!(gnuplot(&picture(&log, &[])).unwrap().contains("set multiplot next"));
        let dates = Abscissa::dates(vec![(86_400.0, "01-02".into()), (172_800.0, "01-03".into())]).unwrap();
        let mut dated = picture(&dates, &[(86_400.0, 2.5), (172_800.0, 3.0)]);
        dated.frames[0].plot.as_mut().unwrap().curves[0].points[1].interval = Some([2.0, 4.0]);
        let change = lines::FrameChange { x: 172_800.0, name: "a\"".into(), tooltip: String::new() };
        dated.frames =
            dated.frames.into_iter().map(|f| lines::with_changes(f, &dates, std::slice::from_ref(&change))).collect();
        let text = gnuplot(&dated).unwrap();
        for part in [
            "86400 2.5 1 \"86400\" 2.5 2.5\n172800 3 1 \"172800\" 2 4\n",
            "set logscale y\nset xrange [82080:177120]\nset xtics (\"01-02\" 86400, \"01-03\" 172800)\n",
            "set arrow from 172800, graph 0 to 172800, graph 1 nohead dashtype 2\nset label \"a\" at 172800, graph 1.02 center\n",
            "plot $frame1curve1 using 1:2:5:6 with yerrorlines title",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(gnuplot(&Picture { frames: Vec::new(), ..picture(&log, &[]) }).is_none());
    }
}
