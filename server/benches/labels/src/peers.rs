//! Other renderers, which draw the same label from our ZPL.

use std::{collections::HashMap, sync::Arc};

use labelize::{Language, RenderOptions};
use parcelo::LabelFormat;
use zpl_forge::{
    Resolution, Unit, ZplEngine,
    forge::{pdf_native::PdfNativeBackend, png::PngBackend},
};

use super::Renderer;

pub fn renderers(zpl: &[u8]) -> Vec<Renderer> {
    let zpl: Arc<str> = String::from_utf8(zpl.to_vec()).unwrap().into();
    let [a, b, c, d] = [(); 4].map(|()| Arc::clone(&zpl));
    vec![
        Renderer::new(LabelFormat::Png, ("zpl-forge, from our ZPL", 4), move || {
            zpl_engine(&a).render(PngBackend::new(), &HashMap::new()).unwrap()
        }),
        Renderer::new(LabelFormat::Pdf, ("zpl-forge, from our ZPL", 4), move || {
            zpl_engine(&b).render(PdfNativeBackend::new(), &HashMap::new()).unwrap()
        }),
        Renderer::new(LabelFormat::Png, ("labelize, from our ZPL", 4), move || {
            labelize::render_png(c.as_bytes(), labelize_options()).unwrap().bytes
        }),
        Renderer::new(LabelFormat::Pdf, ("labelize, from our ZPL", 2), move || {
            labelize::render_pdf(d.as_bytes(), labelize_options()).unwrap().bytes
        }),
    ]
}

fn zpl_engine(zpl: &str) -> ZplEngine {
    let (width, height) = (Unit::Inches(4.0), Unit::Inches(6.0));
    ZplEngine::new(zpl, width, height, Resolution::Dpi203).unwrap()
}

fn labelize_options() -> RenderOptions {
    RenderOptions {
        language: Some(Language::Zpl),
        width_mm: Some(101.6),
        height_mm: Some(152.4),
        ..RenderOptions::default()
    }
}
