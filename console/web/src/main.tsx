import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { LiveProvider, queryClient, SessionProvider, watchUse } from "@/api";
import { router } from "@/router";
import { Frame, SessionFailed } from "@/shell/Frame";
import { Delayed } from "@/ui";
import { applyTheme } from "@/ui/preferences";
import "./styles/app.css";

applyTheme();
watchUse(window);

// The style elements that Radix and CodeMirror create carry the nonce of this page.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content;
if (nonce) setNonce(nonce);

const place = document.getElementById("root");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <SessionProvider
          waiting={
            <Delayed>
              <Frame />
            </Delayed>
          }
          failed={(error, retry) => <SessionFailed error={error} onRetry={retry} />}
        >
          <LiveProvider>
            <RouterProvider router={router} />
          </LiveProvider>
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
