//! Drawing with plotters as SVG, and the classes by which one file serves light and dark pages.

use super::error::ReportError;
use super::html::escaped;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A drawn plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// File name without its ending.
    pub name: String,
    /// What it shows, for the page.
    pub title: String,
    /// What to know when reading it.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

impl Plot {
    /// Its file in the report's folder.
    pub fn file_name(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// The plot of this name as `draw` draws it.
    pub(super) fn drawn(
        name: String,
        title: String,
        caption: String,
        draw: impl FnOnce() -> Result<String, Refusal>,
    ) -> Result<Self, ReportError> {
        match draw() {
            Ok(svg) => Ok(Self { name, title, caption, svg }),
            Err(refusal) => Err(ReportError::Drawing { plot: name, reason: refusal.to_string() }),
        }
    }

    /// The plot in a page; `source` continues its caption and is HTML.
    pub(super) fn figure(&self, source: &str) -> String {
        let (svg, caption) = (self.svg.trim_end(), escaped(&self.caption));
        format!("<figure>\n{svg}\n<figcaption>{caption} {source}</figcaption>\n</figure>\n")
    }
}

/// What the drawing library says when it refuses.
pub(super) type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// What is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

// `finish_svg` gives these colours classes, so no series may have them.
pub(super) const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
/// Okabe and Ito's black, for what is not this crate's; near white on dark pages.
pub(super) const PEER: RGBColor = RGBColor(0x11, 0x11, 0x13);
/// The copy: no contender but the roof.
pub(super) const COPY: RGBColor = RGBColor(0x8c, 0x8c, 0x8c);
pub(super) const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
pub(super) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xfe);
// Text on a coloured field, apart from `PAPER` and `INK`, because a field keeps its colour on a dark page.
pub(super) const ON_DARK: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(super) const ON_LIGHT: RGBColor = RGBColor(0x10, 0x10, 0x10);

/// Text that stands to the right of its point, left of it or around it, and in the middle of its height.
pub(super) fn text(size: i32, color: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color).pos(Pos::new(horizontal, VPos::Center))
}

/// Text below and to the right of its point.
pub(super) fn plain_text(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Paper with a title on it.
pub(super) fn title_of(root: &Area<'_>, title: &str) -> Result<(), Refusal> {
    root.fill(&PAPER)?;
    root.draw(&Text::new(title.to_owned(), (16, 14), plain_text(17)))?;
    Ok(())
}

type Draw<'d> = &'d dyn for<'a> Fn(&Area<'a>) -> Result<(), Refusal>;

/// A drawing as plotters writes it.
fn raw(size: (u32, u32), draw: Draw<'_>) -> Result<String, Refusal> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}

/// The elements of a drawing without the `<svg>` around them, and its first line.
pub(super) fn layer(size: (u32, u32), draw: Draw<'_>) -> Result<(String, String), Refusal> {
    let svg = raw(size, draw)?;
    let start = svg.find('>').map_or(0, |end| end + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    Ok((svg[..start].to_owned(), svg[start..end].trim_start_matches('\n').to_owned()))
}

/// A whole drawing; `title` is for screen readers.
pub(super) fn drawing(size: (u32, u32), title: &str, draw: Draw<'_>) -> Result<String, Refusal> {
    Ok(finish_svg(&raw(size, draw)?, title))
}

/// Colours of the dark page; the attributes in the drawing are those of the light one.
const STYLE: &str = "<style>\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif}\
@media(prefers-color-scheme:dark){\
.ink-fill{fill:#d7dde3}.ink-line{stroke:#8b949e}.grid-line{stroke:#30363d}.paper-fill{fill:#0d1117}}\
</style>";

/// What is added where peers are drawn.
const PEER_STYLE: &str = "<style>\
@media(prefers-color-scheme:dark){.peer-fill{fill:#e6e6e6}.peer-line{stroke:#e6e6e6}}\
</style>";

/// Adds a title for screen readers, the style, and classes where colours follow the page.
pub(super) fn finish_svg(svg: &str, title: &str) -> String {
    let attribute = |name: &str, color: RGBColor| format!("{name}=\"#{:02X}{:02X}{:02X}\"", color.0, color.1, color.2);
    let mut svg = svg.to_owned();
    for (name, color, class) in [
        ("fill", INK, "ink-fill"),
        ("stroke", INK, "ink-line"),
        ("fill", PEER, "peer-fill"),
        ("stroke", PEER, "peer-line"),
        ("stroke", GRID, "grid-line"),
        ("fill", PAPER, "paper-fill"),
    ] {
        let plain = attribute(name, color);
        svg = svg.replace(&plain, &format!("{plain} class=\"{class}\""));
    }
    let head_end = svg.find('>').map_or(0, |end| end + 1);
    let (head, rest) = svg.split_at(head_end);
    let head = head.replacen("<svg ", "<svg role=\"img\" ", 1);
    let peer_style = if rest.contains("class=\"peer-") { PEER_STYLE } else { "" };
    format!("{head}\n<title>{}</title>{STYLE}{peer_style}{rest}", escaped(title))
}
