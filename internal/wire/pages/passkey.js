"use strict";
const form = document.getElementById("passkey");
const alertBox = document.getElementById("problem");
const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const create = async (options) => {
  options.challenge = bytes(options.challenge);
  options.user.id = bytes(options.user.id);
  for (const known of options.excludeCredentials ?? []) known.id = bytes(known.id);
  const made = await navigator.credentials.create({ publicKey: options });
  return [made, { attestationObject: base64(made.response.attestationObject) }];
};

const sign = async (options) => {
  options.challenge = bytes(options.challenge);
  const used = await navigator.credentials.get({ publicKey: options });
  const { authenticatorData, signature, userHandle } = used.response;
  return [used, { authenticatorData: base64(authenticatorData), signature: base64(signature), userHandle: base64(userHandle ?? new ArrayBuffer(0)) }];
};

form.addEventListener("submit", async (event) => {
  if (form.elements.response.value) return;
  event.preventDefault();
  alertBox.textContent = "";
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const [credential, response] = await (form.dataset.kind === "create" ? create : sign)(JSON.parse(form.dataset.options));
    response.clientDataJSON = base64(credential.response.clientDataJSON);
    form.elements.response.value = JSON.stringify({ id: credential.id, rawId: base64(credential.rawId), type: credential.type, response });
    form.submit();
  } catch (error) {
    button.disabled = false;
    alertBox.textContent =
      !window.PublicKeyCredential ? "This browser does not support passkeys. Use another browser or device."
      : error.name === "NotAllowedError" ? "No passkey was used: the request was cancelled or timed out. Try again."
      : error.name === "InvalidStateError" ? "This device already has a passkey for this account. Sign in with it, or use another device."
      : `The browser reports: ${error.message}`;
  }
});
