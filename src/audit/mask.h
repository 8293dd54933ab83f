// Takes what looks like a credential out of text that somebody else chose: a URL with a password in it, a
// token typed into a branch name. It is a courtesy to the user whose token it is, not a wall: who wants to
// write a secret into the log can always spell it differently.
#pragma once

#include <string>
#include <string_view>

namespace sallyport::audit {

// Tokens of base/token_shape.h and JSON Web Tokens become their prefix and "***"; the user information of a
// URL and the values of parameters such as "key" and "signature" become "*". Never longer than `text`;
// masking it again changes nothing.
std::string masked(std::string_view text);

}  // namespace sallyport::audit
