export const access = { title: "Access map" };
