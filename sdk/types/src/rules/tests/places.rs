//! Colombian places as people write them, row by row: the capitals and the hundred largest of the others, by
//! their usual names, with their departments and without.

use super::super::municipalities::Municipalities;
use crate::rules::normalize::fold;

/// The 32 capitals, then the other municipalities with the most people by DANE's projections: code,
/// department, and names, as people write them.
const PLACES: [(&str, &str, &str); 132] = [
    ("05001", "Antioquia", "Medellín"),
    ("08001", "Atlántico", "Barranquilla|Barranquilla D.E.I.P."),
    ("11001", "Bogotá D.C.", "Bogotá|Bogotá D.C.|Santafé de Bogotá|Santa Fe de Bogotá"),
    ("13001", "Bolívar", "Cartagena|Cartagena de Indias|Cartagena D.T. y C."),
    ("15001", "Boyacá", "Tunja"),
    ("17001", "Caldas", "Manizales"),
    ("18001", "Caquetá", "Florencia"),
    ("19001", "Cauca", "Popayán"),
    ("20001", "Cesar", "Valledupar|Valle de Upar"),
    ("23001", "Córdoba", "Montería|San Jerónimo de Montería"),
    ("27001", "Chocó", "Quibdó|San Francisco de Quibdó"),
    ("41001", "Huila", "Neiva"),
    ("44001", "La Guajira", "Riohacha|Río Hacha"),
    ("47001", "Magdalena", "Santa Marta|Santa Marta D.T.C.H."),
    ("50001", "Meta", "Villavicencio"),
    ("52001", "Nariño", "Pasto|San Juan de Pasto"),
    ("54001", "Norte de Santander", "Cúcuta|San José de Cúcuta"),
    ("63001", "Quindío", "Armenia"),
    ("66001", "Risaralda", "Pereira"),
    ("68001", "Santander", "Bucaramanga"),
    ("70001", "Sucre", "Sincelejo"),
    ("73001", "Tolima", "Ibagué"),
    ("76001", "Valle", "Cali|Santiago de Cali"),
    ("81001", "Arauca", "Arauca"),
    ("85001", "Casanare", "Yopal|El Yopal"),
    ("86001", "Putumayo", "Mocoa"),
    ("88001", "San Andrés y Providencia", "San Andrés|San Andrés Isla|San Andrés Islas"),
    ("91001", "Amazonas", "Leticia"),
    ("94001", "Guainía", "Inírida|Puerto Inírida"),
    ("95001", "Guaviare", "San José del Guaviare|San José de Guaviare"),
    ("97001", "Vaupés", "Mitú"),
    ("99001", "Vichada", "Puerto Carreño"),
    ("25754", "Cundinamarca", "Soacha"),
    ("08758", "Atlántico", "Soledad"),
    ("05088", "Antioquia", "Bello"),
    ("76520", "Valle", "Palmira"),
    ("76109", "Valle del Cauca", "Buenaventura|Buenaventura D.E."),
    ("68276", "Santander", "Floridablanca|Florida Blanca"),
    ("05360", "Antioquia", "Itagüí|Itaguí|Itagui"),
    ("52835", "Nariño", "Tumaco|San Andrés de Tumaco"),
    ("05266", "Antioquia", "Envigado"),
    ("66170", "Risaralda", "Dosquebradas|Dos Quebradas"),
    ("76834", "Valle", "Tuluá"),
    ("68081", "Santander", "Barrancabermeja|Barranca Bermeja"),
    ("44847", "Guajira", "Uribia"),
    ("44430", "La Guajira", "Maicao"),
    ("68547", "Santander", "Piedecuesta|Pie de Cuesta"),
    ("68307", "Santander", "Girón|San Juan de Girón"),
    ("76364", "Valle", "Jamundí"),
    ("25269", "Cundinamarca", "Facatativá"),
    ("25290", "Cundinamarca", "Fusagasugá"),
    ("05045", "Antioquia", "Apartadó"),
    ("05837", "Antioquia", "Turbo"),
    ("25175", "Cundinamarca", "Chía"),
    ("25899", "Cundinamarca", "Zipaquirá"),
    ("25473", "Cundinamarca", "Mosquera"),
    ("05615", "Antioquia", "Rionegro|Río Negro"),
    ("25430", "Cundinamarca", "Madrid"),
    ("08433", "Atlántico", "Malambo"),
    ("13430", "Bolívar", "Magangué"),
    ("47189", "Magdalena", "Ciénaga|San Juan de Ciénaga"),
    ("15759", "Boyacá", "Sogamoso"),
    ("23417", "Córdoba", "Lorica|Santa Cruz de Lorica"),
    ("76147", "Valle", "Cartago"),
    ("76111", "Valle", "Buga|Guadalajara de Buga"),
    ("15238", "Boyacá", "Duitama"),
    ("54498", "Norte de Santander", "Ocaña"),
    ("41551", "Huila", "Pitalito"),
    ("25307", "Cundinamarca", "Girardot"),
    ("52356", "Nariño", "Ipiales"),
    ("76892", "Valle", "Yumbo"),
    ("25286", "Cundinamarca", "Funza"),
    ("08638", "Atlántico", "Sabanalarga"),
    ("54874", "Norte de Santander", "Villa del Rosario|Villa Rosario"),
    ("54405", "Norte de Santander", "Los Patios"),
    ("19698", "Cauca", "Santander de Quilichao|Quilichao"),
    ("23807", "Córdoba", "Tierralta|Tierra Alta"),
    ("23162", "Córdoba", "Cereté"),
    ("23660", "Córdoba", "Sahagún"),
    ("23466", "Córdoba", "Montelíbano|Monte Líbano"),
    ("05154", "Antioquia", "Caucasia"),
    ("13836", "Bolívar", "Turbaco"),
    ("20011", "Cesar", "Aguachica"),
    ("76130", "Valle", "Candelaria"),
    ("25126", "Cundinamarca", "Cajicá"),
    ("50006", "Meta", "Acacías"),
    ("44560", "La Guajira", "Manaure"),
    ("50313", "Meta", "Granada"),
    ("13244", "Bolívar", "El Carmen de Bolívar|Carmen de Bolívar"),
    ("47980", "Magdalena", "Zona Bananera"),
    ("17380", "Caldas", "La Dorada|Dorada"),
    ("05631", "Antioquia", "Sabaneta"),
    ("05129", "Antioquia", "Caldas"),
    ("05212", "Antioquia", "Copacabana"),
    ("05380", "Antioquia", "La Estrella"),
    ("08296", "Atlántico", "Galapa"),
    ("08078", "Atlántico", "Baranoa"),
    ("17174", "Caldas", "Chinchiná"),
    ("73268", "Tolima", "Espinal|El Espinal"),
    ("41298", "Huila", "Garzón"),
    ("41396", "Huila", "La Plata"),
    ("66682", "Risaralda", "Santa Rosa de Cabal"),
    ("76275", "Valle", "Florida"),
    ("05490", "Antioquia", "Necoclí"),
    ("05172", "Antioquia", "Chigorodó"),
    ("18753", "Caquetá", "San Vicente del Caguán"),
    ("13052", "Bolívar", "Arjona"),
    ("23555", "Córdoba", "Planeta Rica"),
    ("47555", "Magdalena", "Plato"),
    ("70708", "Sucre", "San Marcos"),
    ("70215", "Sucre", "Corozal"),
    ("47245", "Magdalena", "El Banco"),
    ("47288", "Magdalena", "Fundación"),
    ("54518", "Norte de Santander", "Pamplona"),
    ("05440", "Antioquia", "Marinilla"),
    ("05376", "Antioquia", "La Ceja|La Ceja del Tambo"),
    ("20013", "Cesar", "Codazzi|Agustín Codazzi"),
    ("76248", "Valle", "El Cerrito|Cerrito"),
    ("05147", "Antioquia", "Carepa"),
    ("86568", "Putumayo", "Puerto Asís"),
    ("81736", "Arauca", "Saravena"),
    ("81794", "Arauca", "Tame"),
    ("23189", "Córdoba", "Ciénaga de Oro"),
    ("15176", "Boyacá", "Chiquinquirá"),
    ("15572", "Boyacá", "Puerto Boyacá"),
    ("05308", "Antioquia", "Girardota"),
    ("05250", "Antioquia", "El Bagre"),
    ("13468", "Bolívar", "Mompox|Mompós|Santa Cruz de Mompox"),
    ("70713", "Sucre", "San Onofre"),
    ("63470", "Quindío", "Montenegro"),
    ("63130", "Quindío", "Calarcá"),
    ("44874", "La Guajira", "Villanueva"),
];

/// Returns all ways to write a city with its department.
fn spellings(city: &str, department: &str) -> Vec<String> {
    let whole = [
        format!("{city}, {department}"),
        format!("{city},{department}"),
        format!("{city} ({department})"),
        format!("{city} - {department}"),
        format!("{city}/{department}"),
        format!("{city} {department}"),
        format!("{city}, {department}, Colombia"),
        format!("{city} ({department}), Colombia"),
    ];
    let forgiven = |text: &String| [text.clone(), text.to_uppercase(), fold(text)];
    whole.iter().flat_map(forgiven).collect()
}

#[test]
fn capitals_and_large_cities_are_found_in_any_spelling() {
    let all = Municipalities::all();
    for (code, department, names) in PLACES {
        for name in names.split('|') {
            let alone = [name.to_owned(), name.to_uppercase(), fold(name), format!(" {name}. ")];
            for text in alone.into_iter().chain(spellings(name, department)) {
                let found = all.find(&text).unwrap_or_else(|| panic!("{text} of {code}"));
                assert!(found.is_in(&code[..2]), "{text} of {code}");
                let region = found.department.map(|region| region.code);
                // Bogotá's department is a part of its name.
                assert!(region.is_none_or(|region| region == &code[..2]), "{text}: {region:?}");
            }
        }
    }
}

#[test]
fn text_that_is_not_a_city_is_refused() {
    for text in [
        "Medellin DC",
        "Medellín Distrito Capital",
        "Medellín, Texas",
        "Medellín Texas",
        "Springfield (Antioquia)",
        "Springfield Antioquia",
        "Cali 76",
        "Cali VAC",
        "Antioquia",
        "Valle del Cauca",
        "(Antioquia)",
        ", Antioquia",
        "Bogta",
        "99999",
        "1100",
        "Quito",
        "Colombia, Colombia, Ecuador",
        "Quito, Colombia",
        "-",
        "()",
        "",
    ] {
        assert!(Municipalities::all().find(text).is_none(), "{text}");
    }
}

#[test]
fn a_wrong_department_is_reported_only_if_separate() {
    let table = [
        ("Medellín, Tolima", Some("73"), "05"),
        ("Medellín (Tolima)", Some("73"), "05"),
        ("Cali, 76", Some("76"), "76"),
        ("Cali (VAC)", Some("76"), "76"),
        ("Colombia, Huila", Some("41"), "41"),
        ("Colombia", None, "41"),
        ("Barbosa, Santander", Some("68"), "68"),
        ("Barbosa Antioquia", Some("05"), "05"),
        ("Piendamó - Tunía", None, "19"),
    ];
    for (text, behind, home) in table {
        let found = Municipalities::all().find(text).unwrap();
        assert_eq!(found.department.map(|region| region.code), behind, "{text}");
        assert!(found.is_in(home), "{text}");
    }
    assert!(Municipalities::all().find("Medellín Tolima").is_none());
    let narrowed = Municipalities::all().find("Armenia (Quindío)").unwrap();
    assert!(narrowed.is_in("63") && !narrowed.is_in("05"), "the other Armenia is not meant");
}
