// Answers of our own: a status, a sentence from the table of reasons, and particulars that the client already
// knows. Nothing that the client sent in a header is ever echoed.
#pragma once

#include <string>
#include <string_view>

#include "base/reason.h"
#include "http/connection.h"

namespace sallyport::http {

// RFC 9110, 15: "Forbidden". "" for a status without a name here, which a status line allows.
std::string_view reason_phrase(int status);

struct Refusal {
  Reason reason = Reason::Internal;
  std::string particulars;  // "" or lines for the client's eyes, without a newline at the end
  std::string request_id;
};

// The text: "sallyport: <sentence>\n<particulars>\n<advice>\nrequest <id>\n". git prints each line as
// "remote: ...".
std::string refusal_text(const Refusal& refusal);
// The same facts for machines: one object with error (the reason's code), status, message, particulars,
// advice and request.
std::string refusal_json(const Refusal& refusal);

// The text as a text/plain answer with the reason's status, or the JSON for a client that asks for it. The
// connection stays open when the request was clear and read to its end.
net::Task<Status> refuse(Connection& connection, Refusal refusal);
// A short answer of any kind; with Retry-After, as the connection has it, where trying again may help (RFC
// 9110, 10.2.3; RFC 6585, 4).
net::Task<Status> reply(Connection& connection, int status, std::string content_type, std::string body);

}  // namespace sallyport::http
