//! What all pages are made of: the head, tables, and lists. No network.

use crate::lab::recorder::Skipped;
use std::fmt::Write;

/// Text as HTML or XML text.
pub(super) fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text with a sign in the place of every character that XML cannot hold.
pub(super) fn printable(text: &str) -> String {
    let is_held = |character: char| !matches!(character, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    text.chars().map(|character| if is_held(character) { character } else { '\u{fffd}' }).collect()
}

/// How the style of every page begins, by which a page of this program is told from others.
pub(super) const MARK: &str = ":root{color-scheme:light dark;--ink:";

/// The style of every page.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#24292f;--paper:#fffffe;--muted:#57606a;--line:#d8dee4;--bad:#b3261e;--good:#1a7f37;--link:#0550ae}
@media(prefers-color-scheme:dark){:root{--ink:#d7dde3;--paper:#0d1117;--muted:#8b949e;--line:#30363d;--bad:#ff8a80;--good:#56d364;--link:#79b8ff}}
body{font:16px/1.5 system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper);max-width:900px;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
a{color:var(--link)}
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:.9em}
pre{border:1px solid var(--line);border-radius:6px;padding:.6rem .8rem;overflow-x:auto}
figure{margin:1.6rem 0}figure svg{box-sizing:border-box;max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px}
figcaption,.note{color:var(--muted);font-size:.9rem}
summary{cursor:pointer;color:var(--muted)}
.scroll{overflow-x:auto}figure .scroll svg{max-width:none}
.narrow{display:none}@media(max-width:640px){.wide{display:none}.narrow{display:block}}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;overflow-wrap:normal}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}thead th{color:var(--muted);font-weight:600}
.facts{overflow-wrap:anywhere}.facts th{text-align:left;color:var(--muted);font-weight:400}.facts td{text-align:left;white-space:normal}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}
";

/// A page up to its heading; `style` is added to that of every page.
pub(super) fn head(title: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    )
}

/// The end of a page.
pub(super) const END: &str = "</body>\n</html>\n";

/// A table of names and what is to say of each.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut text = "<table class=\"facts\">\n".to_owned();
    for (name, value) in facts {
        let _ = writeln!(text, "<tr>{}{}</tr>", cell("th", "", name), cell("td", "", &value));
    }
    text + "</table>\n"
}

/// A link to a file beside the page, or to a place in it.
pub(super) fn link(target: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escaped(target), escaped(text))
}

/// What is read only by who asks for it; `summary` is text, `content` HTML.
pub(super) fn folded(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escaped(summary))
}

/// A longer table is folded.
const MOST_OPEN_ROWS: usize = 24;

/// A table that is folded if it is long.
pub(super) fn folded_if_long(summary: &str, rows: usize, table: String) -> String {
    if rows > MOST_OPEN_ROWS { folded(&format!("{summary} ({rows} rows)"), &table) } else { table }
}

/// Good or bad, in colour; `verdict` is text.
pub(super) fn judged(is_good: bool, verdict: &str) -> String {
    format!("<span class=\"{}\">{}</span>", if is_good { "good" } else { "bad" }, escaped(verdict))
}

/// A cell of a table; `attributes` begins with a blank if there are any.
pub(super) fn cell(tag: &str, attributes: &str, text: &str) -> String {
    format!("<{tag}{attributes}>{}</{tag}>", escaped(text))
}

/// A table of the cells of its head and of its rows; `attributes` as those of a cell.
pub(super) fn table(attributes: &str, head: &str, rows: impl Iterator<Item = String>) -> String {
    let mut text = format!("<div class=\"scroll\">\n<table{attributes}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n");
    for row in rows {
        let _ = writeln!(text, "<tr>{row}</tr>");
    }
    text + "</tbody>\n</table>\n</div>\n"
}

/// What was not run, and why.
pub(super) fn list(skipped: &[Skipped]) -> String {
    let mut text = "<ul>\n".to_owned();
    for Skipped { what, why } in skipped {
        let _ = writeln!(text, "<li>{}: {}</li>", escaped(what), escaped(why));
    }
    text + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::super::svg::contrast;
    use super::{MARK, STYLE, escaped, printable};

    #[test]
    fn control_characters_are_no_text() {
        assert_eq!(escaped("a\0b\u{1b}<\u{1f}\t\n\r"), "a\u{fffd}b\u{fffd}&lt;\u{fffd}\t\n\r");
        let text = "µ ü 文 \u{7f}";
        assert_eq!(printable(text), text);
    }

    #[test]
    fn a_page_is_told_by_its_style() {
        assert!(STYLE.starts_with(MARK));
    }

    #[test]
    fn text_can_be_read_on_light_and_on_dark_pages() {
        let schemes: Vec<&str> = STYLE.split(":root{").skip(1).collect();
        assert_eq!(schemes.len(), 2);
        for scheme in schemes {
            let color = |name: &str| {
                let (_, rest) = scheme.split_once(&format!("--{name}:#")).unwrap_or_else(|| panic!("--{name}"));
                let part = |at: usize| u8::from_str_radix(&rest[at..at + 2], 16).unwrap();
                (part(0), part(2), part(4))
            };
            for name in ["ink", "muted", "bad", "good", "link"] {
                assert!(contrast(color(name), color("paper")) >= 4.5, "--{name} of {scheme}");
            }
        }
    }
}
