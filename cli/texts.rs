//! Every word of the command's own, in English and Spanish side by side. What the service and the
//! rules say comes in both languages from them. Only data, and how a text is filled in.

/// Texts by name, and all of them for the tests.
macro_rules! texts {
    ($($name:ident = $en:literal, $es:literal;)+) => {
        $(pub(crate) const $name: Text = Text { en: $en, es: $es };)+
        #[cfg(test)]
        pub(in crate::texts) const ALL: &[(&str, Text)] = &[$((stringify!($name), $name)),+];
    };
}

pub(crate) mod import;
pub(crate) mod tools;

use parcelo::Language;

pub(crate) use tools::*;

/// A text in both languages, with `{places}` to be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    en: &'static str,
    es: &'static str,
}

/// A text in both languages, filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) en: String,
    pub(crate) es: String,
}

impl Text {
    /// The text in a language, as it stands.
    pub(crate) fn pick(self, language: Language) -> &'static str {
        language.pick(self.en, self.es)
    }

    /// The text with its places filled in.
    pub(crate) fn with(self, values: &[(&str, &str)]) -> Message {
        let filled = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
        };
        Message { en: filled(self.en), es: filled(self.es) }
    }
}

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        text.with(&[])
    }
}

impl Message {
    /// The text in a language.
    pub(crate) fn pick(&self, language: Language) -> &str {
        language.pick(&self.en, &self.es)
    }
}

#[rustfmt::skip]
texts! {
    // Headings and labels.
    ARGUMENTS = "Arguments", "Argumentos";
    COMMAND = "COMMAND", "COMANDO";
    COMMANDS = "Commands", "Comandos";
    OPTIONS = "Options", "Opciones";
    USAGE = "Usage:", "Uso:";
    ERROR = "error", "error";
    WARNING = "warning", "aviso";
    HINT = "what to do", "qué hacer";
    REQUEST = "request", "solicitud";
    SUGGESTION = "did you mean {value}?", "¿quiso decir {value}?";
    TRACKING_NUMBER = "Tracking number", "Número de rastreo";
    STATUS = "Status", "Estado";
    ESTIMATED = "Estimated delivery", "Entrega estimada";
    CREATED = "Created", "Creado";
    LABEL = "Label", "Etiqueta";
    LABEL_FILE = "Label file", "Archivo de etiqueta";
    IDEMPOTENCY_KEY = "Idempotency key", "Clave de idempotencia";
    TIME = "Time (UTC)", "Hora (UTC)";
    PLACE = "Place", "Lugar";
    DETAILS = "Details", "Detalles";
    FORMAT = "Format", "Formato";
    FILE = "File", "Archivo";
    BYTES = "Bytes", "Bytes";
    KEY_NAME = "Key", "Clave";
    ENVIRONMENT = "Environment", "Entorno";
    COUNTRIES = "Countries", "Países";
    EVERY_COUNTRY = "every supported country", "todos los países admitidos";
    VALID = "valid", "válido";
    NOT_VALID = "not valid", "no válido";
    BEFORE = "Before", "Antes";
    NOTHING_CHANGED = "was void already", "ya estaba anulado";
    MANIFEST = "Manifest", "Manifiesto";
    AWB = "Air waybill", "Guía aérea";
    PARCELS = "Parcels", "Paquetes";
    WEIGHT = "Weight (kg)", "Peso (kg)";
    VALUE = "Declared value", "Valor declarado";
    FLIGHT = "Flight", "Vuelo";
    DEPARTURE = "Departure", "Salida";
    ROUTE = "Route", "Ruta";
    REFERENCE = "Reference", "Referencia";
    SUBMITTED = "Submitted", "Enviado";
    DESTINATION = "Destination", "Destino";
    ORDER_ID = "Order", "Pedido";
    ACTIVE = "Usable", "Utilizable";
    VERSION = "Version", "Versión";
    REPRINTED = "Reprinted", "Reimpreso";
    VOIDED = "Voided", "Anulado";
    DELETED_LABELS = "Labels deleted", "Etiquetas borradas";
    DELETED_PARCELS = "Parcels deleted", "Paquetes borrados";
    DELETED_MANIFESTS = "Manifests deleted", "Manifiestos borrados";
    DELETED_EVENTS = "Tracking events deleted", "Eventos de rastreo borrados";
    DELETED_KEYS = "Idempotency keys deleted", "Claves de idempotencia borradas";
    DELETED_DELIVERIES = "Webhook deliveries deleted", "Entregas de webhooks borradas";
    RESET_AT = "Reset", "Restablecido";

    // What there is to say besides results.
    REPLAYED = "This order existed already: it was created earlier with the same idempotency key, and nothing was created now.", "Este pedido ya existía: se creó antes con la misma clave de idempotencia y ahora no se creó nada.";
    REPLAYED_VOID = "This was done already with the same idempotency key; nothing was voided now.", "Esto ya se hizo con la misma clave de idempotencia; ahora no se anuló nada.";
    REPLAYED_MANIFEST = "This manifest existed already; nothing was submitted now.", "Este manifiesto ya existía; ahora no se envió nada.";
    REPLAYED_LABEL = "This was done already with the same idempotency key; no new version was made now.", "Esto ya se hizo con la misma clave de idempotencia; ahora no se creó otra versión.";
    NO_PARCELS = "There are no such parcels.", "No hay paquetes así.";
    PAGE_OF = "Page {page} of {pages}; {total} parcel(s) in all. Use --page for another one, --all for all.", "Página {page} de {pages}; {total} paquete(s) en total. Use --page para ver otra, --all para verlos todos.";
    ASK_RESET = "This deletes all orders, labels, manifests and tracking data of your sandbox for good. Go on? Type yes:", "Esto borra para siempre todos los pedidos, etiquetas, manifiestos y datos de rastreo de su entorno de pruebas. ¿Continuar? Escriba sí:";
    SAMPLE = "This is a sample order to {country}. Replace the names, addresses, contents and values with yours, then run: parcelo order validate FILE", "Este es un pedido de ejemplo con destino a {country}. Sustituya los nombres, las direcciones, el contenido y los valores por los suyos y ejecute: parcelo order validate ARCHIVO";
    SAMPLE_KEY = "idempotencyKey names this order: sending it again with the same key never creates a second parcel. Give every order a key of its own.", "idempotencyKey identifica este pedido: enviarlo otra vez con la misma clave nunca crea un segundo paquete. Dé a cada pedido una clave propia.";
    SAMPLE_NUMBER = "Optional: trackingNumber (made for you when absent; in the sandbox SB-SUCCESS-… travels to DELIVERED), externalOrderId, customerReference, companyName, email, line2, lengthCm, widthCm, heightCm, deliveryInstructions. Give weightKg or weightLbs.", "Opcionales: trackingNumber (se genera si falta; en el entorno de pruebas SB-SUCCESS-… llega a DELIVERED), externalOrderId, customerReference, companyName, email, line2, lengthCm, widthCm, heightCm, deliveryInstructions. Indique weightKg o weightLbs.";
    ATTEMPT_FAILED = "{call}: attempt {n} failed ({class}); the next one in {wait}", "{call}: el intento {n} falló ({class}); el siguiente en {wait}";
    CALL_ANSWERED = "{call}: answer {status} at attempt {n}", "{call}: respuesta {status} en el intento {n}";
    CALL_UNANSWERED = "{call}: no answer after {n} attempt(s)", "{call}: sin respuesta tras {n} intento(s)";

    // What is wrong with the command line.
    NO_COMMAND = "No command was given.", "Falta el comando.";
    BAD_COMMAND = "There is no command {value}.", "No existe el comando {value}.";
    ONE_TOO_MANY = "{value} is one word too many.", "Sobra {value}.";
    BAD_OPTION = "There is no option {value} here.", "Aquí no existe la opción {value}.";
    BAD_VALUE = "{value} is no value for {option}; use one of: {values}.", "{value} no es un valor para {option}; use uno de: {values}.";
    NO_VALUE = "{option} needs a value.", "{option} necesita un valor.";
    MISSING = "Missing: {values}", "Falta: {values}";
    TWICE = "{option} was given twice.", "{option} se indicó dos veces.";
    EXCLUDED = "{option} cannot be given together with {other}.", "{option} no se puede indicar junto con {other}.";
    OUT_OF_RANGE = "{value} is no value for {option}; use {min}-{max}.", "{value} no es un valor para {option}; use {min}-{max}.";
    TOO_SMALL = "{value} is no value for {option}; use {min} or more.", "{value} no es un valor para {option}; use {min} o más.";
    WRONG_LINE = "The command line cannot be understood.", "No se entiende la línea de comandos.";
    SEE_HELP = "Add --help to the command to see how it is used.", "Añada --help al comando para ver cómo se usa.";
    PERHAPS = "Perhaps {value}? Add --help to the command to see how it is used.", "¿Quizá {value}? Añada --help al comando para ver cómo se usa.";
    SEE_DIR = "-o says how results are written; where label files go is said with --dir.", "-o indica cómo se escriben los resultados; dónde van las etiquetas se indica con --dir.";
    KEY_IN_ARGUMENTS = "An API key must not stand on the command line, where other users and the shell's history can read it.", "Una clave de API no debe estar en la línea de comandos, donde otros usuarios y el historial pueden leerla.";
    GIVE_KEY = "Set PARCELO_API_KEY, make a profile with parcelo config init, or give the key on standard input with --api-key-stdin. If the key was seen by others, revoke it.", "Defina PARCELO_API_KEY, cree un perfil con parcelo config init o pase la clave por la entrada estándar con --api-key-stdin. Si otros vieron la clave, revóquela.";
    NO_KEY = "There is no API key.", "Falta la clave de API.";
    BAD_KEY = "The API key is not one: it is pk_live_ or pk_test_ and 38 letters and digits.", "La clave de API no lo es: es pk_live_ o pk_test_ y 38 letras y dígitos.";
    NO_BASE_URL = "The service's address is not set.", "Falta la dirección del servicio.";
    GIVE_BASE_URL = "Set PARCELO_BASE_URL, make a profile with parcelo config init, or give --base-url, such as http://127.0.0.1:8081.", "Defina PARCELO_BASE_URL, cree un perfil con parcelo config init o indique --base-url, por ejemplo http://127.0.0.1:8081.";
    STDIN_TWICE = "Standard input can be read for one thing only.", "La entrada estándar solo se puede leer para una cosa.";
    STDIN_ONCE = "Put the key into PARCELO_API_KEY, or read the rest from elsewhere.", "Ponga la clave en PARCELO_API_KEY o lea lo demás de otro lugar.";
    UNFIT = "{value} is no value for {option}.", "{value} no es un valor para {option}.";
    NOT_SURE = "This deletes all data of your sandbox, and there is nobody to ask.", "Esto borra todos los datos de su entorno de pruebas y no hay a quién preguntar.";
    SAY_YES = "Add --yes if you are sure.", "Añada --yes si está seguro.";
    DECLINED = "Nothing was deleted.", "No se borró nada.";
    BAD_COUNTRY = "{value} is no country code: two upper-case letters of ISO 3166-1, such as EC.", "{value} no es un código de país: dos letras mayúsculas de ISO 3166-1, por ejemplo EC.";
    UNREADABLE = "{file} cannot be read: {why}.", "No se puede leer {file}: {why}.";
    UNREADABLE_ROW = "This version cannot read what the service says: {json}", "Esta versión no puede leer lo que dice el servicio: {json}";
    NOT_THERE = "there is no such file", "no existe";
    FORBIDDEN = "you may not read it", "no tiene permiso para leerlo";
    IS_DIRECTORY = "it is a directory", "es un directorio";
    NAME_FILE = "Name a file that you may read, or - for standard input.", "Indique un archivo que pueda leer, o - para la entrada estándar.";
    NO_LABEL_PLACE = "{file} cannot be written: {why}.", "No se puede escribir {file}: {why}.";
    GIVE_PLACE = "Name a file or directory that you may write to; the directory must exist for --label.", "Indique un archivo o directorio en el que pueda escribir; con --label el directorio debe existir.";
    LABEL_TO_STDOUT = "--label takes a file; the order's result goes to standard output.", "--label requiere un archivo; el resultado del pedido va a la salida estándar.";
    GET_TO_STDOUT = "Run: parcelo label get NUMBER --dir -", "Ejecute: parcelo label get NÚMERO --dir -";
    ONE_TO_STDOUT = "Only ZPL labels can follow one another on standard output.", "Solo las etiquetas ZPL pueden ir una tras otra por la salida estándar.";
    ZPL_OR_DIRECTORY = "Add --format zpl, or save them with --dir DIR.", "Añada --format zpl o guárdelas con --dir DIRECTORIO.";
    NOT_TO_TERMINAL = "A {format} file is not for a terminal.", "Un archivo {format} no es para una terminal.";
    REDIRECT = "Send the output into a file or a pipe, or give --dir DIR.", "Envíe la salida a un archivo o una tubería, o indique --dir DIRECTORIO.";

    // What is wrong with the input.
    BAD_ORDER = "The order is not valid; nothing was sent.", "El pedido no es válido; no se envió nada.";
    BAD_ORDERS = "{bad} of {all} order(s) are not valid.", "{bad} de {all} pedido(s) no son válidos.";
    BAD_NUMBERS = "These are not tracking numbers; nothing was sent.", "Estos no son números de rastreo; no se envió nada.";
    NUMBER_FORM = "{value}: a tracking number has 10-30 letters, digits and hyphens, with no hyphen at either end.", "{value}: un número de rastreo tiene 10-30 letras, dígitos y guiones, sin guion en los extremos.";
    BAD_REQUEST = "The request is not valid; nothing was sent.", "La solicitud no es válida; no se envió nada.";
    NO_NUMBERS = "There is no tracking number.", "No hay ningún número de rastreo.";
    BAD_MANIFEST = "This is not the id of a manifest; nothing was sent.", "Este no es el identificador de un manifiesto; no se envió nada.";
    MANIFEST_FORM = "{value}: a manifest's id begins with man_.", "{value}: el identificador de un manifiesto empieza por man_.";
    NO_ORDERS = "There is no order in it.", "No contiene ningún pedido.";

    // What to do after a failed call.
    FIX_FIELDS = "Correct these fields and run the command again.", "Corrija estos campos y ejecute el comando de nuevo.";
    FIX_REQUEST = "Correct the request and run the command again.", "Corrija la solicitud y ejecute el comando de nuevo.";
    CHECK_KEY = "Check PARCELO_API_KEY and the address: sandbox keys (pk_test_) belong to the sandbox's address, live keys (pk_live_) to production's.", "Revise PARCELO_API_KEY y la dirección: las claves de prueba (pk_test_) son para la dirección del entorno de pruebas y las de producción (pk_live_) para la de producción.";
    CHECK_COUNTRIES = "Use a key that may ship to this country; parcelo health shows what this one may do.", "Use una clave que pueda enviar a ese país; parcelo health muestra lo que puede hacer esta.";
    CHECK_NUMBER = "Check the number; a key sees the parcels of its own account and environment only.", "Revise el número; una clave solo ve los paquetes de su propia cuenta y entorno.";
    CHECK_CALL = "Check the method and the path.", "Revise el método y la ruta.";
    CHECK_ADDRESS = "Check the address in PARCELO_BASE_URL or --base-url.", "Revise la dirección en PARCELO_BASE_URL o --base-url.";
    CHECK_MANIFEST = "Check the id; a key sees the manifests of its own account and environment only.", "Revise el identificador; una clave solo ve los manifiestos de su propia cuenta y entorno.";
    NOT_VOIDABLE = "An order can be voided until its parcel is in a manifest or a carrier has it.", "Un pedido se puede anular hasta que su paquete esté en un manifiesto o lo tenga un transportista.";
    LEAVE_OUT = "Leave these parcels out and run the command again; nothing was submitted.", "Deje fuera estos paquetes y ejecute el comando de nuevo; no se envió nada.";
    OTHER_MANIFEST = "Give another air waybill, or see what was submitted: parcelo manifest show {id}", "Indique otra guía aérea o vea lo que se envió: parcelo manifest show {id}";
    OTHER_KEY = "If this is another request, give it an idempotency key of its own.", "Si es otra solicitud, dele una clave de idempotencia propia.";
    ORDER_ANEW = "If it is still to be shipped, create a new order with a new idempotency key.", "Si aún debe enviarse, cree un pedido nuevo con otra clave de idempotencia.";
    OTHER_NUMBER = "Give another trackingNumber, or leave it out to get one.", "Indique otro trackingNumber u omítalo para recibir uno.";
    WAIT = "Wait {n} second(s), then run the command again.", "Espere {n} segundo(s) y ejecute el comando de nuevo.";
    WAIT_A_WHILE = "Wait a while, then run the command again.", "Espere un rato y ejecute el comando de nuevo.";
    TRY_AGAIN = "Nothing was executed: check the address and the network, then run the command again.", "No se ejecutó nada: revise la dirección y la red y ejecute el comando de nuevo.";
    CHECK_CERTIFICATE = "Nothing was executed: check that the address is right and its server speaks https. If its certificate comes from an authority of your own, name that authority's PEM file in SSL_CERT_FILE.", "No se ejecutó nada: revise que la dirección sea correcta y que su servidor hable https. Si su certificado es de una autoridad propia, indique el archivo PEM de esa autoridad en SSL_CERT_FILE.";
    RESUME_ORDER = "Nobody knows yet whether it was executed. Run the same command again with the same order: its idempotency key {key} keeps it from being created twice (for 24 hours).", "Aún no se sabe si se ejecutó. Ejecute otra vez el mismo comando con el mismo pedido: su clave de idempotencia {key} evita que se cree dos veces (durante 24 horas).";
    RESUME_WITH_KEY = "Nobody knows yet whether it was executed. Run the same command again with --idempotency-key {key}, which keeps it from being done twice (for 24 hours).", "Aún no se sabe si se ejecutó. Ejecute otra vez el mismo comando con --idempotency-key {key}, que evita que se haga dos veces (durante 24 horas).";
    RESUME_MANIFEST = "Nobody knows yet whether it was executed. Run the same command again: the same parcels under the same air waybill are never submitted twice.", "Aún no se sabe si se ejecutó. Ejecute otra vez el mismo comando: los mismos paquetes con la misma guía aérea nunca se envían dos veces.";
    RESUME_LOOK = "Nobody knows yet whether it was executed. Run parcelo parcel list to see, and the same command again if need be.", "Aún no se sabe si se ejecutó. Ejecute parcelo parcel list para verlo y, si hace falta, otra vez el mismo comando.";
    INTERRUPTED = "Interrupted.", "Interrumpido.";
    PARTLY = "{done} of {all} done; the others failed.", "{done} de {all} hechos; los demás fallaron.";
    NONE_DONE = "None of {all} was done.", "No se hizo ninguno de {all}.";
    LABEL_UNSAVED = "The order was created, but its label could not be saved: {why}", "El pedido se creó, pero no se pudo guardar su etiqueta: {why}";
    GET_LABEL = "Get the label with: parcelo label get {number}", "Obtenga la etiqueta con: parcelo label get {number}";
    OUTPUT_LOST = "The results could not be written to standard output: {why}.", "No se pudieron escribir los resultados en la salida estándar: {why}.";
    BUG = "This is a bug in parcelo ({place}). Please report it with the command that you ran.", "Esto es un error de parcelo ({place}). Informe de él con el comando que ejecutó.";
}

/// What each command does, by its path; under it stands what its `--help` adds at the end.
#[rustfmt::skip]
pub(crate) const COMMAND_HELP: &[(&str, Text)] = &[
    ("parcelo", Text { en: "Ship parcels across borders: create orders with labels, track them, fetch their labels.", es: "Envíe paquetes internacionales: cree pedidos con etiqueta, rastréelos y obtenga sus etiquetas." }),
    ("parcelo order", Text { en: "Create, check and void orders", es: "Crear, revisar y anular pedidos" }),
    ("parcelo order create", Text { en: "Create an order from a JSON file, and save its label if asked", es: "Crear un pedido a partir de un archivo JSON y, si se pide, guardar su etiqueta" }),
    ("parcelo order void", Text { en: "Void orders before they are shipped", es: "Anular pedidos antes de que se envíen" }),
    ("parcelo order validate", Text { en: "Check orders offline, by the service's own rules", es: "Revisar pedidos sin conexión, con las mismas reglas del servicio" }),
    ("parcelo order template", Text { en: "Print a sample order to start from", es: "Imprimir un pedido de ejemplo para empezar" }),
    ("parcelo manifest", Text { en: "Submit manifests: parcels under an air waybill", es: "Enviar manifiestos: paquetes con una guía aérea" }),
    ("parcelo manifest submit", Text { en: "Submit a manifest: all of its parcels, or none", es: "Enviar un manifiesto: todos sus paquetes o ninguno" }),
    ("parcelo manifest show", Text { en: "Show a manifest", es: "Mostrar un manifiesto" }),
    ("parcelo track", Text { en: "Show where parcels stand", es: "Mostrar dónde están los paquetes" }),
    ("parcelo parcel", Text { en: "Look through your parcels", es: "Consultar sus paquetes" }),
    ("parcelo parcel list", Text { en: "List parcels, newest first", es: "Listar paquetes, los más nuevos primero" }),
    ("parcelo label", Text { en: "Fetch and reprint labels", es: "Obtener y reimprimir etiquetas" }),
    ("parcelo label get", Text { en: "Save label files", es: "Guardar archivos de etiquetas" }),
    ("parcelo label show", Text { en: "Show a label's text and details", es: "Mostrar el texto y los datos de una etiqueta" }),
    ("parcelo label reprint", Text { en: "Make a label anew, marked as a reprint", es: "Crear de nuevo una etiqueta, marcada como reimpresión" }),
    ("parcelo sandbox", Text { en: "Work on the sandbox as a whole", es: "Trabajar con el entorno de pruebas entero" }),
    ("parcelo sandbox reset", Text { en: "Delete all orders, labels, manifests and tracking data of the sandbox", es: "Borrar todos los pedidos, etiquetas, manifiestos y datos de rastreo del entorno de pruebas" }),
    ("parcelo health", Text { en: "Check the API key and what it may do", es: "Comprobar la clave de API y lo que puede hacer" }),
];

/// What each argument means, by its id.
#[rustfmt::skip]
pub(crate) const ARGUMENT_HELP: &[(&str, Text)] = &[
    ("file", Text { en: "The order as JSON; - reads standard input", es: "El pedido en JSON; - lee la entrada estándar" }),
    ("files", Text { en: "One order, an array of orders, or one order a line; - reads standard input", es: "Un pedido, una lista de pedidos o un pedido por línea; - lee la entrada estándar" }),
    ("label", Text { en: "Save the label in this file", es: "Guardar la etiqueta en este archivo" }),
    ("format", Text { en: "The label's format: pdf, zpl or png [default: the file's ending, else pdf]", es: "El formato de la etiqueta: pdf, zpl o png [por defecto: la extensión del archivo; si no, pdf]" }),
    ("label_format", Text { en: "The label's format: pdf, zpl or png [default: pdf]", es: "El formato de la etiqueta: pdf, zpl o png [por defecto: pdf]" }),
    ("country", Text { en: "Where the sample goes: a country's ISO code [default: EC]", es: "El destino del ejemplo: el código ISO de un país [por defecto: EC]" }),
    ("numbers", Text { en: "Tracking numbers; - reads them from standard input, one a line", es: "Números de rastreo; - los lee de la entrada estándar, uno por línea" }),
    ("number", Text { en: "The tracking number", es: "El número de rastreo" }),
    ("manifest_id", Text { en: "The manifest's id, man_…", es: "El identificador del manifiesto, man_…" }),
    ("reason", Text { en: "Why; at most 255 characters", es: "El motivo; como máximo 255 caracteres" }),
    ("idempotency_key", Text { en: "The key that keeps this from being done twice; give the one that was shown to resume [default: a fresh one]", es: "La clave que evita que esto se haga dos veces; indique la que se mostró para continuar [por defecto: una nueva]" }),
    ("awb", Text { en: "The air waybill, such as 176-12345675", es: "La guía aérea, por ejemplo 176-12345675" }),
    ("flight", Text { en: "The flight, such as EK213", es: "El vuelo, por ejemplo EK213" }),
    ("departure", Text { en: "The day of departure, such as 2026-01-11", es: "El día de salida, por ejemplo 2026-01-11" }),
    ("from", Text { en: "The airport of departure, such as MIA", es: "El aeropuerto de salida, por ejemplo MIA" }),
    ("to", Text { en: "The airport of arrival, such as UIO", es: "El aeropuerto de llegada, por ejemplo UIO" }),
    ("reference", Text { en: "Your reference; at most 100 characters", es: "Su referencia; como máximo 100 caracteres" }),
    ("status", Text { en: "Only parcels in this status, such as IN_TRANSIT", es: "Solo paquetes en este estado, por ejemplo IN_TRANSIT" }),
    ("destination", Text { en: "Only parcels to this country: its ISO code, such as EC", es: "Solo paquetes a este país: su código ISO, por ejemplo EC" }),
    ("limit", Text { en: "Parcels on a page, 1-100 [default: 20; with --all 100]", es: "Paquetes por página, 1-100 [por defecto: 20; con --all 100]" }),
    ("page", Text { en: "Which page [default: 1]", es: "Qué página [por defecto: 1]" }),
    ("all", Text { en: "All pages", es: "Todas las páginas" }),
    ("yes", Text { en: "Do not ask whether you are sure", es: "No preguntar si está seguro" }),
    ("history", Text { en: "Show how each parcel got there", es: "Mostrar el recorrido de cada paquete" }),
    ("dir", Text { en: "Where to save: a directory, or - for standard output [default: .]", es: "Dónde guardar: un directorio, o - para la salida estándar [por defecto: .]" }),
    ("output", Text { en: "How to write results, and with json and ndjson errors too: table, json, ndjson or csv [environment: PARCELO_OUTPUT; default: table]", es: "Cómo escribir los resultados y, con json y ndjson, también los errores: table, json, ndjson o csv [entorno: PARCELO_OUTPUT; por defecto: table]" }),
    ("lang", Text { en: "The language: en or es [environment: PARCELO_LANG; default: from LC_ALL, LC_MESSAGES, LANG]", es: "El idioma: en o es [entorno: PARCELO_LANG; por defecto: según LC_ALL, LC_MESSAGES, LANG]" }),
    ("base_url", Text { en: "The service's address [environment: PARCELO_BASE_URL]", es: "La dirección del servicio [entorno: PARCELO_BASE_URL]" }),
    ("api_key_stdin", Text { en: "Read the API key from standard input instead of PARCELO_API_KEY", es: "Leer la clave de API de la entrada estándar y no de PARCELO_API_KEY" }),
    ("verbose", Text { en: "Show attempts and waits", es: "Mostrar intentos y esperas" }),
    ("help", Text { en: "Show this help", es: "Mostrar esta ayuda" }),
    ("version", Text { en: "Show the version", es: "Mostrar la versión" }),
];

/// The names of values, where Spanish has another.
#[rustfmt::skip]
pub(crate) const VALUE_NAMES: &[(&str, Text)] = &[
    ("FILE", Text { en: "FILE", es: "ARCHIVO" }),
    ("FILE|-", Text { en: "FILE|-", es: "ARCHIVO|-" }),
    ("FORMAT", Text { en: "FORMAT", es: "FORMATO" }),
    ("CODE", Text { en: "CODE", es: "CÓDIGO" }),
    ("NUMBER", Text { en: "NUMBER", es: "NÚMERO" }),
    ("NUMBER|-", Text { en: "NUMBER|-", es: "NÚMERO|-" }),
    ("MANIFEST", Text { en: "MANIFEST", es: "MANIFIESTO" }),
    ("AWB", Text { en: "AWB", es: "GUÍA" }),
    ("FLIGHT", Text { en: "FLIGHT", es: "VUELO" }),
    ("DATE", Text { en: "DATE", es: "FECHA" }),
    ("AIRPORT", Text { en: "AIRPORT", es: "AEROPUERTO" }),
    ("STATUS", Text { en: "STATUS", es: "ESTADO" }),
    ("TEXT", Text { en: "TEXT", es: "TEXTO" }),
    ("KEY", Text { en: "KEY", es: "CLAVE" }),
    ("N", Text { en: "N", es: "N" }),
    ("DIR|-", Text { en: "DIR|-", es: "DIRECTORIO|-" }),
    ("LANGUAGE", Text { en: "LANGUAGE", es: "IDIOMA" }),
    ("URL", Text { en: "URL", es: "URL" }),
];

/// What the main help ends with.
pub(crate) const EXIT_CODES: Text = Text {
    en: "\
Exit codes:
    0  done
    1  a bug, or the results could not be written
    2  the command line or a file is wrong
    3  an order or a number is not valid
    4  the API key is missing or wrong, or may not ship to this country
    5  not found
    6  conflict with what the service already has
    7  too many requests
    8  the service could not be reached or did not answer; nothing was executed
    9  nobody knows whether it was executed; the key to resume with is shown
   10  partly failed
  130  interrupted",
    es: "\
Códigos de salida:
    0  hecho
    1  un error del programa, o no se pudieron escribir los resultados
    2  la línea de comandos o un archivo está mal
    3  un pedido o un número no es válido
    4  falta la clave de API, no es válida o no puede enviar a ese país
    5  no existe
    6  conflicto con lo que el servicio ya tiene
    7  demasiadas solicitudes
    8  no se pudo contactar con el servicio o no respondió; no se ejecutó nada
    9  no se sabe si se ejecutó; se muestra la clave para continuar
   10  falló en parte
  130  interrumpido",
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn places(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    #[test]
    fn both_languages_say_it_with_the_same_places() {
        let same_word = ["ERROR", "BYTES", "URL", "N", "AS_IS", "CHECK_DNS"];
        let helps = COMMAND_HELP.iter().chain(ARGUMENT_HELP).chain(VALUE_NAMES);
        let helps = helps.chain(tools::COMMAND_HELP).chain(tools::ARGUMENT_HELP);
        let helps = helps.chain(tools::VALUE_NAMES).chain(import::COMMAND_HELP);
        let helps = helps.chain(import::ARGUMENT_HELP).chain(import::VALUE_NAMES);
        for (name, text) in ALL.iter().chain(tools::ALL).chain(import::ALL).chain(helps) {
            assert!(!text.en.is_empty() && !text.es.is_empty(), "{name}");
            assert_eq!(places(text.en), places(text.es), "{name}");
            assert_eq!(text.en == text.es, same_word.contains(name), "{name}");
        }
    }

    #[test]
    fn a_filled_text_has_no_place_left() {
        let said = WAIT.with(&[("n", "3")]);
        assert_eq!(said.pick(Language::En), "Wait 3 second(s), then run the command again.");
        assert_eq!(said.pick(Language::Es), "Espere 3 segundo(s) y ejecute el comando de nuevo.");
    }
}
